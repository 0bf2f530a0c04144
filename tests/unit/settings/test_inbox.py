"""The settings of the inbox: what is written is what holds, and what could not work is told."""

from pathlib import Path

import pytest

from wakeful.runtime import Runtime
from wakeful.settings.load import load_text
from wakeful.settings.problems import BadSettings
from wakeful.settings.settings import Settings
from wakeful.testing.kit import Scripted
from wakeful.turn.agent import Agent
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.inbox import InboxRules, InboxSource, PriorityName
from wakeful.vocabulary.stimulus import StormLimits, StormOverrides

ENVIRON = {"WAKEFUL_HOME": "/srv/wakeful"}


def read(text: str) -> InboxRules:
    return load_text(text, Path("/etc/wakeful.yaml"), ENVIRON).settings.inbox


def test_without_a_word_every_source_has_the_defaults():
    rules = read("")

    assert rules == InboxRules(max_bytes=65_536, depth=10_000)
    assert rules.of("anybody") == InboxSource(
        agent=None,
        session_prefix=None,
        priority_cap=PriorityName.NOW,
        depth=1000,
        per_minute=0,
        dedup_window_s=300,
    )


def test_what_is_written_of_a_source_holds_for_it_alone():
    rules = read(
        "inbox: {max_bytes: 1000, depth: 9, sources: {db.1: {agent: main, priority_cap: later, "
        "depth: 3, per_minute: 2, dedup_window_s: 60, storm: {turns: 2}}}}"
    )

    found = rules.of("db.1")
    assert (rules.max_bytes, rules.depth) == (1000, 9)
    assert (found.priority_cap, found.depth, found.per_minute) == (PriorityName.LATER, 3, 2)
    assert found.storm.over(StormLimits()) == StormLimits(turns=2, window_s=60)
    assert rules.of("db") == InboxSource()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{sources: {a: {agent: nobody}}}", "inbox.sources.a.agent: must be one of main, not"),
        ("{sources: {A B: {}}}", "inbox.sources.A B: must be named with"),
        ("{sources: {a: {depth: 0}}}", "inbox.sources.a.depth: must be from 1 to"),
        ("{sources: {a: {storm: {turns: 0}}}}", "inbox.sources.a.storm.turns: must be from 1"),
        ("{sources: {a: {priority_cap: soon}}}", "inbox.sources.a.priority_cap: must be one of"),
        ("{sources: {a: {session_prefix: 'No'}}}", "inbox.sources.a.session_prefix: must be"),
        ("{sources: {a: {colour: red}}}", "inbox.sources.a.colour: unknown key"),
        ("{max_bytes: 0}", "inbox.max_bytes: must be from 1 to"),
    ],
)
def test_what_could_not_work_is_told_with_its_key(text: str, words: str):
    with pytest.raises(BadSettings) as bad:
        read(f"inbox: {text}")

    assert words in str(bad.value)


async def test_a_program_is_told_of_an_agent_that_is_not_there_and_new_settings_hold_at_once():
    agent = Agent(model=Scripted([]))
    wrong = Settings(inbox=InboxRules(sources={"a": InboxSource(agent="nobody")}))
    right = Settings(inbox=InboxRules(sources={"a": InboxSource(storm=StormOverrides(turns=1))}))
    async with Runtime(agents=[agent]) as runtime:
        with pytest.raises(InvalidInput, match=r"inbox\.sources\.a\.agent"):
            await runtime.reconfigure(settings=wrong)
        await runtime.reconfigure(settings=right)

        assert runtime.services.intake.inbox == right.inbox
