"""A turn that sees only itself leaves no trace in what its session's next turns see or measure."""

from pathlib import Path

import pytest

from tests.integration.engine.looking import shown, turn_of
from tests.integration.engine.small import LONG, RULES, Small, uncounted
from wakeful.models.model import Reply, Request
from wakeful.models.prices import Price, Rate
from wakeful.models.scripted import Line
from wakeful.models.tariffs import Tariff
from wakeful.runtime import Runtime
from wakeful.testing.kit import ManualClock, Pause, Scripted, in_memory, operator_draft, wait_for
from wakeful.turn.agent import Agent
from wakeful.vocabulary.heartbeat import HeartbeatRules
from wakeful.vocabulary.kinds import Kind, View
from wakeful.vocabulary.message import Text, Usage
from wakeful.vocabulary.proactive import ProactiveRules

MAIN = "agent:main:main"
TURNS = 14
BEAT = operator_draft(session_key=MAIN, text="anything to do?", kind=Kind.HEARTBEAT)


def sized(text: str, tokens: int) -> Reply:
    return Reply(
        content=(Text(text=text),), stop_reason="stop", usage=Usage(input=tokens, output=1)
    )


async def test_a_light_turn_sees_only_itself_and_the_next_one_all_of_it():
    model = Scripted(["hello", "nothing", "well"])
    async with in_memory(model) as runtime:
        await turn_of(runtime, await runtime.send("hi"))
        beat = await turn_of(runtime, await runtime.accept(BEAT))
        await turn_of(runtime, await runtime.send("and?"))

    assert beat.view is View.LIGHT
    assert shown(model.requests[1]) == ["user: anything to do?"]
    assert shown(model.requests[2]) == [
        "user: hi",
        "assistant: hello",
        "user: anything to do?",
        "assistant: nothing",
        "user: and?",
    ]


async def test_what_a_light_turn_used_is_not_taken_for_the_size_of_its_session():
    async with in_memory(Scripted([sized("hello", 5000), sized("nothing", 40)])) as runtime:
        await turn_of(runtime, await runtime.send("hi"))
        (before,) = await runtime.store.read(
            "SELECT context_tokens FROM sessions WHERE key NOT LIKE '%:activity'"
        )
        await turn_of(runtime, await runtime.accept(BEAT))
        (after,) = await runtime.store.read(
            "SELECT context_tokens FROM sessions WHERE key NOT LIKE '%:activity'"
        )

    assert before[0] == after[0] == 5001


async def test_a_context_that_is_built_anew_measures_the_same_as_one_that_was_kept():
    """The reply to a light context says nothing of the whole one, however it is read."""
    sizes: list[int] = []

    async def measured(is_kept: bool) -> int:
        model = Scripted([sized("hello", 5000), sized("nothing", 40), "well"])
        async with in_memory(model) as runtime:
            await turn_of(runtime, await runtime.send("hi"))
            await turn_of(runtime, await runtime.accept(BEAT))
            if not is_kept:
                opening = runtime._running.built.followers.dispatcher._runner._opening  # pyright: ignore[reportPrivateUsage]
                opening.contexts._kept.clear()  # pyright: ignore[reportPrivateUsage]
            await turn_of(runtime, await runtime.send("and?"))
            (row,) = await runtime.store.read(
                "SELECT context_tokens FROM sessions WHERE key NOT LIKE '%:activity'"
            )
            return row[0]

    for is_kept in (True, False):
        sizes.append(await measured(is_kept))

    assert sizes[0] == sizes[1]


async def test_nobody_joins_a_turn_that_sees_only_itself():
    pause = Pause("looking around")
    model = Scripted(["hello", pause, "for you"])
    async with in_memory(model) as runtime:
        await turn_of(runtime, await runtime.send("hi"))
        beat = await runtime.accept(BEAT)
        await pause.reached.wait()
        mine = await runtime.send("are you there?")
        pause.go_on.set()
        first = await turn_of(runtime, beat)
        second = await turn_of(runtime, mine)

    assert mine.outcome.value == "queued"
    assert first.id != second.id
    assert second.reply == "for you"


class Talkative(Small):
    """Answers people at some length, and heartbeats with nothing."""

    def __init__(self) -> None:
        super().__init__([])
        self.to_people: list[Request] = []
        self.reserved: list[int] = []  # for what they asked
        self.tariffs = (Tariff(price=Price(input=Rate(base=1.0)), max_output=100),)

    def _next(self) -> Line | Pause:
        request = self.requests[-1]
        if request.purpose != "reply":
            return super()._next()
        if "Look around." in request.messages[-1].text:
            return uncounted("HEARTBEAT_OK")
        self.to_people.append(request)
        return uncounted(f"answer {len(self.to_people)}")


async def at_rest(runtime: Runtime) -> None:
    """Return when nothing waits or runs, no compaction either."""
    while True:
        since = await runtime.cursor()
        if not await runtime.store.read(
            "SELECT 1 FROM stimuli WHERE state IN ('pending', 'claimed')"
        ):
            return
        await wait_for(runtime, "turn.finished", since=since)


async def talked(workspace: Path, *, beats: bool) -> Talkative:
    """Let people say many things, with or without a heartbeat after each."""
    model, clock = Talkative(), ManualClock()
    rules = HeartbeatRules(prompt="Look around.")
    agent = Agent(model=model, compaction=RULES, workspace=workspace, heartbeat=rules)
    async with Runtime(agents=[agent], clock=clock) as runtime:
        for number in range(TURNS):
            await turn_of(
                runtime, await runtime.send(f"question {number} {LONG[: 400 + 100 * (number % 7)]}")
            )
            await at_rest(runtime)
            if beats:
                await runtime.services.heartbeats.ask("main")
                clock.advance(1)
                await at_rest(runtime)
        rows = await runtime.store.read(
            "SELECT asks.reserved FROM asks JOIN turns ON turns.id = asks.turn_id "
            "WHERE turns.kind = 'user' ORDER BY asked_at, turn_id, asks.step"
        )
    model.reserved = [row[0] for row in rows]
    return model


async def test_a_conversation_with_light_heartbeats_is_shown_and_compacted_as_without(
    tmp_path: Path,
):
    """User turn, light heartbeat, user turn: nothing that people's turns see has changed."""
    for name in ("MEMORY.md", "USER.md", "HEARTBEAT.md"):
        (tmp_path / name).write_text(f"What {name} says. " * 20)

    without, between = [await talked(tmp_path, beats=beats) for beats in (False, True)]

    assert len(between.requests) >= len(without.requests) + TURNS
    assert list(map(shown, between.to_people)) == list(map(shown, without.to_people))
    assert between.summed_up == without.summed_up
    assert between.reserved == without.reserved
    assert len(without.summed_up) > 1


@pytest.mark.parametrize(
    ("kind", "is_light", "files"),
    [
        (Kind.HEARTBEAT, True, ["AGENTS", "HEARTBEAT"]),
        (Kind.HEARTBEAT, False, ["AGENTS", "SOUL", "USER", "MEMORY", "HEARTBEAT"]),
        (Kind.TICK, True, ["AGENTS", "SOUL", "USER", "MEMORY", "HEARTBEAT"]),
    ],
)
async def test_a_light_heartbeat_reads_its_tasks_and_the_rules_alone(
    tmp_path: Path, kind: Kind, is_light: bool, files: list[str]
):
    for name in ("AGENTS", "SOUL", "USER", "MEMORY", "HEARTBEAT"):
        (tmp_path / f"{name}.md").write_text(f"what {name} says")
    model = Scripted(["NO_REPLY"])
    agent = Agent(
        model=model,
        instructions="Be kind.",
        workspace=tmp_path,
        heartbeat=HeartbeatRules(light_context=is_light),
        proactive=ProactiveRules(enabled=True, light_context=is_light, initial_greeting=False),
    )
    async with Runtime(agents=[agent]) as runtime:
        draft = operator_draft(session_key=MAIN, text="anything to do?", kind=kind)
        await turn_of(runtime, await runtime.accept(draft))

    system = model.requests[0].system
    assert "Be kind." in system
    told = [line.split()[1] for line in system.splitlines() if line.startswith("what ")]
    assert told == files
