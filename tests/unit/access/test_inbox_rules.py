"""Who may leave what in the inbox, as a table."""

import pytest

from wakeful.access import rules
from wakeful.access.principal import Principal
from wakeful.vocabulary.session_key import SessionKey
from wakeful.vocabulary.stimulus import Trust

OPERATOR = Principal.operator()


def token(*scopes: str) -> Principal:
    return Principal(name="t", scopes=scopes, owner="tk_1", trust=Trust.EXTERNAL, token_id="tk_1")


@pytest.mark.parametrize(
    ("principal", "source", "may"),
    [
        (OPERATOR, "anything", True),
        (token("inbox:backup"), "backup", True),
        (token("inbox:backup"), "backups", False),
        (token("inbox:backup"), "operator", False),
        (token("inbox:a", "inbox:b"), "b", True),
        (token("send", "read"), "t", False),
        (token("a2a:backup"), "backup", False),
        (Principal.stranger(), "stranger", False),
    ],
)
def test_a_source_posts_as_itself_alone(principal: Principal, source: str, may: bool):
    assert rules.may_post_as(principal, source) is may


def test_only_the_operator_chooses_another_agent():
    assert rules.may_choose_agent(OPERATOR, "other", "main")
    assert rules.may_choose_agent(token("inbox:a"), "main", "main")
    assert not rules.may_choose_agent(token("inbox:a"), "other", "main")


@pytest.mark.parametrize(
    ("key", "prefix", "is_allowed"),
    [
        ("agent:main:main", None, False),
        ("agent:main:main", "main", True),
        ("agent:main:mainly", "main", False),
        ("agent:main:api:ops", "api:ops", True),
        ("agent:main:api:ops:disk", "api:ops", True),
        ("agent:main:api:ops:disk", "api:ops:", True),
        ("agent:main:api:opsx", "api:ops", False),
        ("agent:main:api:ops", "agent:main:api", True),
        ("agent:other:api:ops", "api:ops", False),
        ("agent:other:api:ops", "agent:other:api", False),
    ],
)
def test_a_session_is_named_below_a_prefix_of_the_settings(
    key: str, prefix: str | None, is_allowed: bool
):
    assert rules.has_prefix(SessionKey(key), prefix, "main") is is_allowed
