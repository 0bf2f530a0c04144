"""Which calls run, wait or never run."""

import pytest

from wakeful.vocabulary.approving import (
    ExpiryDefault,
    Permission,
    ToolPermission,
    checked,
    permission_of,
    read,
)
from wakeful.vocabulary.errors import InvalidInput

LONG = ToolPermission(rule=Permission.ASK, expires="90m", default=ExpiryDefault.ALLOW)


@pytest.mark.parametrize(
    ("name", "rule"),
    [("shell", Permission.ASK), ("mail", Permission.DENY), ("other", Permission.ALLOW)],
)
def test_what_is_not_named_is_allowed(name: str, rule: Permission):
    rules = read({"shell": "ask", "mail": Permission.DENY})

    assert permission_of(rules, name).rule is rule


def test_the_long_form_has_a_time_and_what_is_done_after_it():
    rule = permission_of({"shell": LONG}, "shell")

    assert (rule.expires_ms, rule.default) == (5_400_000, ExpiryDefault.ALLOW)
    assert permission_of({"shell": Permission.ASK}, "shell").expires_ms == 7 * 86_400_000


@pytest.mark.parametrize("expires", ["1s", "400d", "soon", ""])
def test_a_time_that_cannot_be_meant_is_refused_with_its_key(expires: str):
    with pytest.raises(InvalidInput) as refused:
        checked({"shell": ToolPermission(rule=Permission.ASK, expires=expires)})

    assert refused.value.field == "approvals.shell.expires"


def test_a_word_that_is_no_rule_is_refused_with_its_key():
    with pytest.raises(InvalidInput) as refused:
        read({"shell": "perhaps"})

    assert refused.value.field == "approvals.shell"
