"""Who may see, enter or make a session, as a table."""

import re

import pytest
from msgspec.structs import replace

from tests.sources import SOURCE, texts
from wakeful.access import rules
from wakeful.access.principal import Principal
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.stimulus import Trust

PLACE = "telegram:dm:ann"
OPERATOR = Principal.operator()


def token(*scopes: str, trust: Trust = Trust.EXTERNAL) -> Principal:
    return Principal(token_id="tk_1", name="n", scopes=scopes, owner="tk_1", trust=trust)


SENDER, READER, BOTH = token("send"), token("read"), token("read", "send")
TRUSTED = token("send", trust=Trust.OPERATOR)
STRANGER = replace(Principal.stranger(), owner=PLACE)  # as messaging names it
NAMELESS = Principal.stranger()


@pytest.mark.parametrize(
    ("principal", "seen"),
    [
        (OPERATOR, {"operator", "tk_1", "tk_2", PLACE, None}),
        (READER, {"operator", "tk_1", "tk_2", PLACE, None}),
        (BOTH, {"operator", "tk_1", "tk_2", PLACE, None}),
        (SENDER, {"tk_1"}),
        (TRUSTED, {"tk_1"}),
        (STRANGER, {PLACE}),
        (NAMELESS, set[str | None]()),
    ],
)
def test_each_sees_its_own_and_readers_everything(principal: Principal, seen: set[str | None]):
    owners = ("operator", "tk_1", "tk_2", PLACE, "", None)

    assert {owner for owner in owners if rules.may_see(principal, owner)} - {""} == seen


@pytest.mark.parametrize(
    ("principal", "entered"),
    [
        (OPERATOR, {"operator", "tk_1", "tk_2", PLACE}),
        (READER, {"tk_1"}),
        (BOTH, {"tk_1"}),
        (SENDER, {"tk_1"}),
        (TRUSTED, {"tk_1"}),
        (STRANGER, {PLACE}),
        (NAMELESS, set[str]()),
    ],
)
def test_only_the_operator_enters_what_others_own(principal: Principal, entered: set[str]):
    owners = ("operator", "tk_1", "tk_2", PLACE)
    key = keys.canonical("web:1")

    assert {owner for owner in owners if rules.may_enter(principal, key, owner)} == entered


@pytest.mark.parametrize(
    ("key", "makers"),
    [
        ("main", {"operator"}),
        ("activity", {"operator"}),
        ("unified", {"operator"}),
        ("subagent:1", {"operator"}),
        ("automation:1", {"operator"}),
        ("notes", {"operator"}),
        ("tk_1", {"operator"}),
        ("api", {"operator"}),
        ("dm:ann", {"operator"}),
        ("api:1", {"operator", "token"}),
        ("api:1:thread:2", {"operator", "token"}),
        ("web:1", {"operator"}),
        ("web:desk", {"operator"}),
        ("web:0192a4c0-0000-4000-8000-00000000000a", {"operator", "token"}),
        ("agent:scout:web:0192a4c0-0000-4000-8000-00000000000a:thread:2", {"operator", "token"}),
        ("web:0192a4c0-0000-4000-8000-00000000000a0", {"operator"}),
        ("telegram:dm:bob", {"operator"}),
        ("telegram:group:ann", {"operator"}),
        ("telegram:dm:ann", {"operator", "stranger"}),
        ("agent:scout:telegram:dm:ann:thread:7", {"operator", "stranger"}),
    ],
)
def test_a_session_that_is_not_there_is_made_by(key: str, makers: set[str]):
    who = {"operator": OPERATOR, "token": SENDER, "stranger": STRANGER, "nameless": NAMELESS}
    canonical = keys.canonical(key)

    assert {name for name, one in who.items() if rules.may_make(one, canonical)} == makers
    assert {name for name, one in who.items() if rules.may_enter(one, canonical, None)} == makers


def test_only_the_operator_speaks_for_others():
    assert rules.may_speak_as(OPERATOR, "cron")
    assert rules.may_speak_as(SENDER, "n")
    assert not rules.may_speak_as(SENDER, "operator")
    assert not rules.may_speak_as(STRANGER, "operator")


@pytest.mark.parametrize(
    ("owner", "holder", "may"),
    [
        ("operator", "tk_1", True),
        ("operator", None, True),
        ("tk_1", "tk_1", True),
        ("tk_1", "operator", False),
        ("tk_1", "tk_2", False),
        ("tk_1", None, False),
        ("", "", False),
    ],
)
def test_what_is_done_for_an_owner_touches_its_own_alone(owner: str, holder: str | None, may: bool):
    assert rules.may_write(owner, holder) is may


def test_nobody_else_compares_an_owner_with_the_operator():
    compared = re.compile(r"[!=]= OPERATOR\b|\bin \(OPERATOR\b")

    places = {name for name, text in texts(SOURCE).items() if compared.search(text)}

    assert places == {"access/rules.py"}
