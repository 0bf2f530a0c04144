"""What features hang on: ends told once, a gate asked twice, grants, locks of other lanes."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from tests.conformance.engine.conftest import SettingsFor
from tests.conformance.engine.hooked import hooked
from tests.conformance.store.tables import together
from wakeful.assembly.hooks import Hooks
from wakeful.broker import lane_rows
from wakeful.broker.settlement import Settled
from wakeful.gate.wakes import PASSED, GateVerdict, Verdict, Wake
from wakeful.models.model import Request
from wakeful.models.scripted import Line
from wakeful.runtime import Runtime
from wakeful.store.database import YIELDING_FUNCTIONS, Tx, Verb
from wakeful.testing.kit import (
    ManualClock,
    Pause,
    Scripted,
    call,
    in_memory,
    operator_draft,
    says,
    wait_for,
)
from wakeful.tools.tool import CallFacts, LedgerContext, Tool, tool
from wakeful.turns.turns import End, Turn, TurnState
from wakeful.vocabulary.errors import Overloaded
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.message import ToolMessage, UserMessage
from wakeful.vocabulary.queueing import Mode, QueueOverrides
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import OPERATOR, Draft, Outcome, Priority, Receipt, Stimulus, Trust

MAIN = "agent:main:main"
OTHER = "agent:main:dm:ann"


class Told:
    """Writes down, in the transaction itself, what ended: a rolled back end leaves nothing."""

    def __init__(self) -> None:
        self.hooks = Hooks(on_settled=[self.settled], on_ended=[self.ended])

    def settled(self, tx: Tx, settled: Sequence[Settled]) -> None:
        for one in settled:
            self._note(tx, one.id, f"{one.kind} {one.state} {one.reason}")

    def ended(self, tx: Tx, turn: Turn, how: End) -> None:
        self._note(tx, turn.id, f"turn {how.state}")

    def _note(self, tx: Tx, key: str, text: str) -> None:
        note(tx, key, text)


def note(tx: Tx, key: str, text: str) -> None:
    count = tx.one("SELECT COUNT(*) FROM audit")
    assert count is not None
    tx.run(
        "INSERT INTO audit (id, at, who, action, target) VALUES (:id, :now, :key, :text, 'told')",
        id=f"au_{count[0]}",
        now=tx.now,
        key=key,
        text=text,
    )


async def told(runtime: Runtime) -> dict[str, list[str]]:
    rows = await runtime.store.read("SELECT who, action FROM audit WHERE target = 'told'")
    found: dict[str, list[str]] = {}
    for key, text in rows:
        found.setdefault(key, []).append(text)
    return found


async def test_every_end_of_a_stimulus_is_told_once_whatever_ended_it(settings_for: SettingsFor):
    pause = Pause("slow")
    model = Scripted([pause, "done"])
    async with hooked(model, Told().hooks, settings=settings_for()) as runtime:
        first = await runtime.send("work")
        await pause.reached.wait()
        steered = await runtime.send("more")
        by_sender = await runtime.send("never mind", mode="queue")
        await runtime.cancel(by_sender.stimulus_id)
        tick = await runtime.accept(operator_draft(session_key=OTHER, text="tick", kind=Kind.TICK))
        pause.go_on.set()
        await runtime.wait(first)
        await runtime.wait(steered)
        await runtime.halt()
        suppressed = await runtime.accept(
            operator_draft(session_key=MAIN, text="tick", kind=Kind.TICK)
        )
        parked = await runtime.send("parked")
        await runtime.delete("main")
        found = await told(runtime)

    assert found[first.stimulus_id] == ["user done None"]
    assert found[by_sender.stimulus_id] == ["user cancelled by-sender"]
    assert found[tick.stimulus_id] == ["tick suppressed session-deleted"]
    assert found[suppressed.stimulus_id] == ["tick suppressed halted"]
    assert found[parked.stimulus_id] == ["user cancelled session-deleted"]
    assert len(found[steered.stimulus_id]) == 1


async def test_a_session_that_is_deleted_ends_its_turn_like_any_other(settings_for: SettingsFor):
    pause = Pause("slow")
    async with hooked(Scripted([pause]), Told().hooks, settings=settings_for()) as runtime:
        receipt = await runtime.send("work")
        await pause.reached.wait()
        (turn_id,) = [row[0] for row in await runtime.store.read("SELECT id FROM turns")]
        await runtime.delete("main")
        found = await told(runtime)

    assert found[turn_id] == ["turn stopped"]
    assert found[receipt.stimulus_id] == ["user cancelled session-deleted"]


class Quiet:
    """A gate that lets ticks and strangers wait while it is shut."""

    def __init__(self, look_at: int | None) -> None:
        self.look_at = look_at
        self.is_shut = True
        self.asked: list[Wake] = []

    def may_wake(self, tx: Tx, wakes: Sequence[Wake]) -> Sequence[GateVerdict]:
        self.asked += wakes
        quiet = GateVerdict(verdict=Verdict.QUIET_HOURS, look_at=self.look_at)
        return [
            PASSED if not self.is_shut or wake.trust is Trust.OPERATOR else quiet for wake in wakes
        ]


def outside(text: str, source: str = "scout") -> Draft:
    return Draft(
        session_key=MAIN,
        text=text,
        kind=Kind.A2A,
        trust=Trust.EXTERNAL,
        owner=OPERATOR,
        source=source,
    )


async def test_what_the_gate_refuses_is_parked_and_asked_again_in_time(settings_for: SettingsFor):
    clock = ManualClock()
    gate = Quiet(look_at=clock.now() + 60_000)
    hooks = Hooks(may_wake=gate.may_wake)
    async with hooked(Scripted(["hello"]), hooks, settings=settings_for(), clock=clock) as runtime:
        receipt = await runtime.accept(outside("psst"))
        gate.is_shut = False
        clock.advance(60)
        turn = await runtime.wait(receipt)

    assert (receipt.outcome, receipt.reason) == (Outcome.PARKED, "quiet-hours")
    assert turn is not None
    assert turn.reply == "hello"


async def test_a_gate_that_shut_meanwhile_sets_a_whole_class_aside_with_one_look(
    settings_for: SettingsFor,
):
    gate = Quiet(look_at=None)
    gate.is_shut = False
    pause = Pause("busy")
    model = Scripted([pause, "for the operator"])
    hooks = Hooks(may_wake=gate.may_wake)
    async with hooked(model, hooks, settings=settings_for()) as runtime:
        await runtime.send("work")
        await pause.reached.wait()
        waiting = [await runtime.accept(outside(f"psst {n}")) for n in range(5)]
        mine = await runtime.send("mine", mode="queue", route=Route(door="cli"))
        gate.is_shut = True
        gate.asked.clear()
        pause.go_on.set()
        await runtime.wait(mine)
        rows = await runtime.store.read(
            "SELECT state, state_reason FROM stimuli WHERE kind = 'a2a' ORDER BY id"
        )
        asked = [wake.trust for wake in gate.asked]

    assert [receipt.outcome for receipt in waiting] == [Outcome.QUEUED] * 5
    assert [tuple(row) for row in rows] == [("parked", "quiet-hours")] * 5
    assert asked.count(Trust.EXTERNAL) == 1


async def test_what_the_gate_ends_in_a_lane_ends_by_the_class_with_one_look(
    settings_for: SettingsFor,
):
    gate = Quiet(look_at=None)
    gate.is_shut = False
    pause, notes = Pause("busy"), Told()
    hooks = Hooks(may_wake=gate.may_wake, on_settled=[notes.settled])
    async with hooked(
        Scripted([pause, "for the operator"]), hooks, settings=settings_for()
    ) as runtime:
        await runtime.send("work")
        await pause.reached.wait()
        fields = {"kind": Kind.TICK, "priority": Priority.LATER}
        for number in range(5):
            await runtime.accept(replace(outside(f"tick {number}"), **fields))
        other = await runtime.accept(replace(outside("tick", "another"), **fields))
        mine = await runtime.send("mine", mode="queue", route=Route(door="cli"))
        gate.is_shut = True
        gate.asked.clear()
        pause.go_on.set()
        await runtime.wait(mine)
        await wait_for(
            runtime, "stimulus.suppressed", lambda event: event.stimulus_id == other.stimulus_id
        )
        rows = await runtime.store.read("SELECT state, state_reason FROM stimuli WHERE kind='tick'")
        ends = [line for lines in (await told(runtime)).values() for line in lines]

    assert [tuple(row) for row in rows] == [("suppressed", "quiet-hours")] * 6
    assert [wake.source for wake in gate.asked if wake.kind is Kind.TICK] == ["scout", "another"]
    assert ends.count("tick suppressed quiet-hours") == 6


@tool
def act() -> str:
    """Act."""
    return "acted"


@tool
def write() -> str:
    """Write."""
    return "written"


def grants(one: Stimulus) -> tuple[str, ...]:
    return {"trusted": ("act", "write"), "half": ("act",)}.get(one.source, ())


async def test_a_granted_tool_stays_granted_for_as_long_as_its_turn_lasts(
    settings_for: SettingsFor,
):
    clock = ManualClock()
    lines = [says("", call("act")), Overloaded("busy"), says("", call("write")), "well"]
    model = Scripted(lines)
    granted: dict[str, tuple[str, ...]] = {"half": ("act",)}
    hooks = Hooks(grants_of=lambda one: granted.get(one.source, ()))
    tools = [act, write]
    async with hooked(model, hooks, tools=tools, settings=settings_for(), clock=clock) as runtime:
        receipt = await runtime.accept(outside("go", "half"))
        await wait_for(runtime, "turn.left")
        granted["half"] = ("act", "write")  # other settings hold for the next turn
        clock.advance(60)
        turn = await runtime.wait(receipt)

    assert turn is not None
    assert turn.granted == ("act",)
    results = [one for one in model.requests[-1].messages if isinstance(one, ToolMessage)]
    assert [result.text for result in results] == ["acted", "there is no tool 'write'"]


async def test_who_joins_a_turn_brings_it_no_grants_and_keeps_only_those_that_both_have(
    settings_for: SettingsFor,
):
    pause = Pause("thinking", then=says("", call("act")))
    model = Scripted([pause, "well"])
    hooks = Hooks(grants_of=grants)
    async with hooked(model, hooks, tools=[act, write], settings=settings_for()) as runtime:
        first = await runtime.accept(outside("go", "trusted"))
        await pause.reached.wait()
        await runtime.accept(outside("and this", "half"))
        pause.go_on.set()
        turn = await runtime.wait(first)

    assert turn is not None
    assert turn.granted == ("act",)


def tell(*, declares: bool) -> Tool:
    def locks(arguments: Mapping[str, Any], _facts: CallFacts) -> list[str]:
        return [arguments["session"]] if declares else []

    @tool(effect="ledger", locks=locks)
    def tell(session: str, text: str, context: LedgerContext) -> str:
        """Tell another session."""
        (receipt,) = context.file(
            [
                Draft(
                    owner=context.session.owner,
                    session_key=session,
                    text=text,
                    kind=Kind.SUBAGENT_MESSAGE,
                    queue=QueueOverrides(mode=Mode.QUEUE),
                    trust=context.turn.trust,
                    source=context.turn.session_key,
                    cause_id=context.turn.id,
                    root_id=context.turn.root_id,
                    depth=context.turn.depth + 1,
                )
            ]
        )
        return receipt.outcome.value

    return tell


@pytest.mark.parametrize("declares", [True, False])
async def test_two_sessions_that_write_to_each_other_at_once_lose_nothing(
    settings_for: SettingsFor, declares: bool
):
    """The lanes are locked up front and in order, or found and locked in a second run."""
    rounds = 10

    def answer(request: Request) -> Line:
        last = request.messages[-1]
        if isinstance(last, UserMessage) and last.text.startswith("tell "):
            session = last.text.removeprefix("tell ")
            return says("", call("tell", session=session, text="hello"))
        return "ok"

    model = Scripted(answer)
    async with in_memory(
        model, tools=[tell(declares=declares)], settings=settings_for()
    ) as runtime:
        for session in (MAIN, OTHER):
            await runtime.wait(await runtime.send("hi", session=session))
        receipts: list[Receipt] = []
        for _ in range(rounds):
            receipts.append(await runtime.send(f"tell {OTHER}", session=MAIN, mode="queue"))
            receipts.append(await runtime.send(f"tell {MAIN}", session=OTHER, mode="queue"))
        for receipt in receipts:
            await runtime.wait(receipt)
        rows = await runtime.store.read(
            "SELECT COUNT(*) FROM stimuli WHERE kind = 'subagent.message'"
        )

    assert rows[0][0] == 2 * rounds


async def test_a_lane_that_a_call_declares_is_held_from_the_beginning_of_its_commit(
    settings_for: SettingsFor,
):
    held: list[bool] = []

    @tool(effect="ledger", locks=lambda arguments, _facts: [arguments["session"]])
    def look(session: str, context: LedgerContext) -> str:
        """Look at another session."""
        held.append(context.tx.holds(lane_rows.lock(session)))
        return "seen"

    model = Scripted(["hi", says("", call("look", session=OTHER)), "well"])
    async with in_memory(model, tools=[look], settings=settings_for()) as runtime:
        await runtime.wait(await runtime.send("hi", session=OTHER))
        await runtime.wait(await runtime.send("look"))

    assert held == [True]


@pytest.mark.parametrize("how_it_ends", [TurnState.DONE, TurnState.STOPPED])
async def test_a_turn_whose_end_is_filed_elsewhere_holds_that_lane_in_each_commit(
    settings_for: SettingsFor, how_it_ends: TurnState
):
    """However it ends, its report is filed once; a deleted session holds the lane in a second run.

    Nobody knows what a session reports to before its lane is held.
    """
    held: list[bool] = []
    holder: dict[str, Runtime] = {}

    def report(tx: Tx, turn: Turn, how: End) -> None:
        if turn.reports_to is None:
            return
        intake = holder["runtime"].services.intake
        held.append(tx.holds(lane_rows.lock(turn.reports_to)))
        intake.accept_in(
            tx,
            [
                Draft(
                    owner=OPERATOR,
                    session_key=turn.reports_to,
                    text=f"it is {how.state}",
                    kind=Kind.SUBAGENT_ANNOUNCE,
                    trust=turn.trust,
                    source="child",
                )
            ],
        )

    def reports_to(tx: Tx, stimulus: Stimulus) -> str | None:
        return MAIN if stimulus.session_key == OTHER else None

    pause = Pause("forty-two")
    model = Scripted(["hi", pause, "heard"])
    hooks = Hooks(on_ended=[report], reports_to=reports_to)
    async with hooked(model, hooks, settings=settings_for()) as runtime:
        holder["runtime"] = runtime
        await runtime.wait(await runtime.send("hello"))
        await runtime.send("work", session=OTHER)
        await pause.reached.wait()
        if how_it_ends is TurnState.DONE:
            pause.go_on.set()
        else:
            await runtime.delete(OTHER)
        event = await wait_for(
            runtime, "turn.finished", lambda event: event.data["reply"] == "heard", session=MAIN
        )
        reports = await runtime.store.read(
            "SELECT text FROM stimuli WHERE kind = 'subagent.announce'"
        )

    assert event.data["state"] == "done"
    assert [row[0] for row in reports] == [f"it is {how_it_ends}"]
    assert held[-1]
    assert len(held) == 1 or how_it_ends is TurnState.STOPPED


async def test_a_row_beside_a_stimulus_is_there_with_it_or_not_at_all(settings_for: SettingsFor):
    async with in_memory(Scripted(lambda _: "ok"), settings=settings_for()) as runtime:
        intake = runtime.services.intake

        def beside(tx: Tx, receipt: Receipt) -> None:
            note(tx, receipt.stimulus_id, "task")

        def broken(tx: Tx, receipt: Receipt) -> None:
            beside(tx, receipt)
            raise RuntimeError("no")

        draft = operator_draft(session_key=MAIN, text="x", dedup_key="k")
        with pytest.raises(RuntimeError):
            await intake.accept_with(draft, broken)
        first = await intake.accept_with(draft, beside)
        again = await intake.accept_with(draft, beside)
        found = await told(runtime)
        rows = await runtime.store.read("SELECT id FROM stimuli")

    assert again.outcome is Outcome.DUPLICATE
    assert [row[0] for row in rows] == [first.stimulus_id] == list(found)
    assert found[first.stimulus_id] == ["task"]


@pytest.mark.parametrize(
    ("session", "kind", "is_made"),
    [
        ("agent:main:main", Kind.HEARTBEAT, True),
        ("agent:main:activity", Kind.DIGEST, True),
        ("agent:main:dm:ann", Kind.AUTOMATION, False),
        ("agent:main:dm:ann", Kind.SUBAGENT_ANNOUNCE, False),
        ("agent:main:dm:ann", Kind.A2A, True),
        ("agent:main:automation:j1", Kind.ISOLATED_AUTOMATION, True),
        ("agent:main:automation:j1", Kind.AUTOMATION, False),
        ("agent:main:subagent:u1", Kind.SUBAGENT_TASK, True),
        ("agent:main:subagent:u1", Kind.SUBAGENT_ANNOUNCE, False),
    ],
)
async def test_what_the_runtime_files_itself_makes_no_session_but_its_own(
    settings_for: SettingsFor, session: str, kind: Kind, is_made: bool
):
    async with in_memory(Scripted(lambda _: "ok"), settings=settings_for()) as runtime:
        receipt = await runtime.accept(
            operator_draft(session_key=session, text="x", kind=kind, priority=Priority.LATER)
        )
        rows = await runtime.store.read("SELECT key FROM sessions WHERE key = :key", key=session)
        lanes = await runtime.store.read("SELECT session_key FROM lanes")

    assert [row[0] for row in rows] == [row[0] for row in lanes] == ([session] if is_made else [])
    if not is_made:
        assert (receipt.outcome, receipt.reason) == (Outcome.SUPPRESSED, "session-deleted")


async def test_lanes_in_no_hurry_open_a_few_at_a_time(settings_for: SettingsFor):
    """So that whoever talks meanwhile never waits for all of them."""
    opened: list[int] = []
    count = 12

    def once_a_commit(tx: Tx, rows: Sequence[str]) -> Sequence[str]:
        tx.after_commit(lambda: opened.append(len(rows)))
        return rows

    counted = Verb("once a commit", once_a_commit)

    def may_wake(tx: Tx, wakes: Sequence[Wake]) -> Sequence[GateVerdict]:
        if len(wakes) == 1:  # all are accepted at once, and each lane is claimed by itself
            tx.gather(counted, wakes[0].id)
        return [PASSED] * len(wakes)

    drafts = [
        operator_draft(f"agent:main:dm:{number}", "go on", priority=Priority.LATER)
        for number in range(count)
    ]
    model = Scripted(lambda _: "done")
    async with hooked(model, Hooks(may_wake=may_wake), settings=settings_for()) as runtime:
        receipts = await together(runtime.store, *map(runtime.accept, drafts))
        for receipt in receipts:
            await runtime.wait(receipt)

    assert max(opened) == YIELDING_FUNCTIONS
    assert sum(opened) == count
