"""Heartbeats: regular, in step, silent unless there is something to say, and free if idle."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from wakeful.broker import lane_rows
from wakeful.gate import halts
from wakeful.models.model import Model, Reply
from wakeful.models.scripted import Line, Pause
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import ManualClock, Scripted, call, says, wait_for
from wakeful.triggers.heartbeat_skips import AskedBy
from wakeful.turn.agent import Agent
from wakeful.views.usage import UsageBy
from wakeful.vocabulary.agent import Limits
from wakeful.vocabulary.budget import BudgetRules
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.heartbeat import HeartbeatRules
from wakeful.vocabulary.hours import DailyHours
from wakeful.vocabulary.message import Text, Thinking
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import Draft, Trust

MAIN = "agent:main:main"
PROMPTED = HeartbeatRules(prompt="Look around.")
PATIENT = Limits(first_token_s=86_400, idle_s=86_400, answer_s=86_400, wall_s=86_400)
MINUTE = 60


def beating(
    model: Model | Sequence[Line | Pause],
    clock: ManualClock,
    rules: HeartbeatRules = PROMPTED,
    *,
    home: Path | None = None,
    workspace: Path | None = None,
    **options: Any,
) -> Runtime:
    voice = model if isinstance(model, Model) else Scripted(model)
    agent = Agent(model=voice, heartbeat=rules, limits=PATIENT, workspace=workspace)
    return Runtime(agents=[agent], settings=Settings(home=home), clock=clock, **options)


async def due(runtime: Runtime) -> list[int]:
    rows = await runtime.store.read("SELECT due_at FROM timers WHERE kind = 'heartbeat'")
    return [row[0] for row in rows]


async def beats(runtime: Runtime) -> list[tuple[str, str | None]]:
    rows = await runtime.store.read(
        "SELECT state, state_reason FROM stimuli WHERE kind = 'heartbeat' ORDER BY id"
    )
    return [(row[0], row[1]) for row in rows]


async def outcome(runtime: Runtime) -> str:
    ((found,),) = await runtime.store.read("SELECT last_outcome FROM heartbeats")
    return found


async def seen(runtime: Runtime, kind: str, count: int) -> None:
    """Return when there have been so many events of a kind."""
    found = 0

    def is_last(_event: Event) -> bool:
        nonlocal found
        found += 1
        return found == count

    await wait_for(runtime, kind, is_last)


async def ask(runtime: Runtime, by: AskedBy = AskedBy.OPERATOR, source: str = "operator"):
    heart = runtime.services.heartbeats
    return await runtime.store.transact(
        lambda tx: heart.ask_in(tx, "main", by, source),
        locks=[lane_rows.lock(MAIN), halts.ASKING],
    )


async def test_an_idle_day_of_a_fresh_install_asks_no_model(tmp_path: Path) -> None:
    clock, model = ManualClock(), Scripted([])
    async with beating(model, clock, HeartbeatRules(), workspace=tmp_path) as runtime:
        for count in range(1, 49):
            clock.advance(30 * MINUTE)
            await seen(runtime, "heartbeat.skipped", count)
        found = await beats(runtime)
        entries = await runtime.store.read("SELECT 1 FROM entries")
        asked = await runtime.store.read("SELECT 1 FROM asks")
        left, last = await due(runtime), await outcome(runtime)

    assert found == [("suppressed", "nothing-to-do")] * 48
    assert (entries, asked, model.requests) == ([], [], [])
    assert left == [clock.now() + 30 * MINUTE * 1000]
    assert last == "skipped:nothing-to-do"


async def test_a_list_of_tasks_is_looked_after(tmp_path: Path) -> None:
    clock, model = ManualClock(), Scripted(["HEARTBEAT_OK"])
    (tmp_path / "HEARTBEAT.md").write_text("# Tasks\n- [ ]\n")
    async with beating(model, clock, HeartbeatRules(), workspace=tmp_path) as runtime:
        clock.advance(30 * MINUTE)
        await seen(runtime, "heartbeat.skipped", 1)
        (tmp_path / "HEARTBEAT.md").write_text("# Tasks\n- look at the disk\n")
        clock.advance(30 * MINUTE)
        await seen(runtime, "turn.finished", 1)
        found = await beats(runtime)

    (request,) = model.requests
    assert found == [("suppressed", "nothing-to-do"), ("done", "acknowledged")]
    assert "look at the disk" in request.system
    assert request.messages[-1].text.startswith("Read HEARTBEAT.md if it exists")


async def test_what_was_only_acknowledged_leaves_no_trace() -> None:
    clock, model = ManualClock(), Scripted(["hello", "HEARTBEAT_OK", "well"])
    async with beating(model, clock) as runtime:
        await runtime.wait(await runtime.send("hi"))
        await runtime.see()
        clock.advance(30 * MINUTE)
        await seen(runtime, "turn.finished", 2)
        unread, last = await runtime.see(), await outcome(runtime)
        await runtime.wait(await runtime.send("how are you?"))

    assert (unread, last) == (0, "acknowledged")
    first, light, third = ([one.text for one in r.messages] for r in model.requests)
    assert light == ["Look around."]
    assert third == [*first, "hello", "how are you?"]


@pytest.mark.parametrize("is_light", [True, False])
async def test_what_a_heartbeat_said_is_remembered(is_light: bool) -> None:
    clock, model = ManualClock(), Scripted(["hello", "The disk is full.", "yes"])
    rules = replace(PROMPTED, light_context=is_light)
    async with beating(model, clock, rules) as runtime:
        await runtime.wait(await runtime.send("hi"))
        await runtime.see()
        clock.advance(30 * MINUTE)
        await seen(runtime, "turn.finished", 2)
        last = await outcome(runtime)
        ((unread,),) = await runtime.store.read(
            "SELECT unread FROM sessions WHERE key = :key", key=MAIN
        )
        await runtime.wait(await runtime.send("really?"))

    assert (unread, last) == (1, "sent")
    second = [one.text for one in model.requests[1].messages]
    third = [one.text for one in model.requests[2].messages]
    assert second == (["Look around."] if is_light else ["hi", "hello", "Look around."])
    assert third == ["hi", "hello", "Look around.", "The disk is full.", "really?"]


async def test_a_full_context_that_was_acknowledged_leaves_no_trace_either() -> None:
    clock, model = ManualClock(), Scripted(["hello", "HEARTBEAT_OK", "well"])
    async with beating(model, clock, replace(PROMPTED, light_context=False)) as runtime:
        await runtime.wait(await runtime.send("hi"))
        clock.advance(30 * MINUTE)
        await seen(runtime, "turn.finished", 2)
        await runtime.wait(await runtime.send("how are you?"))

    assert [one.text for one in model.requests[2].messages] == ["hi", "hello", "how are you?"]


ELSEWHERE = replace(PROMPTED, target=Route(door="chat", address="me"))


async def delivered(runtime: Runtime) -> list[str]:
    rows = await runtime.store.read("SELECT text FROM deliveries ORDER BY id")
    return [row[0] for row in rows]


async def test_the_same_words_are_not_sent_twice_within_a_day() -> None:
    clock, model = ManualClock(), Scripted(lambda _: "The disk is full.")
    async with beating(model, clock, replace(ELSEWHERE, every="12h")) as runtime:
        outcomes: list[str] = []
        for count in range(1, 4):
            clock.advance(12 * 60 * MINUTE)
            await seen(runtime, "turn.finished", count)
            outcomes.append(await outcome(runtime))
        sent = await delivered(runtime)

    assert outcomes == ["sent", "duplicate", "sent"]
    assert sent == ["The disk is full."] * 2


@pytest.mark.parametrize(
    ("rules", "reply", "sent"),
    [
        (ELSEWHERE, "HEARTBEAT_OK all is well", []),
        (ELSEWHERE, "All is well.", ["All is well."]),
        (ELSEWHERE, "NO_REPLY", []),
        (replace(ELSEWHERE, ack_max_chars=3), "HEARTBEAT_OK fine", ["fine"]),
        (replace(PROMPTED, target="none"), "The disk is full.", []),
        (PROMPTED, "The disk is full.", ["The disk is full."]),
    ],
)
async def test_what_is_delivered_of_an_answer(
    rules: HeartbeatRules, reply: str, sent: list[str]
) -> None:
    clock = ManualClock()
    async with beating(["hello", reply], clock, rules) as runtime:
        route = Route(door="chat", address="me")
        draft = Draft(session_key=MAIN, text="hi", trust=Trust.OPERATOR, owner="operator")
        await runtime.wait(await runtime.accept(replace(draft, route=route)))
        clock.advance(30 * MINUTE)
        await seen(runtime, "turn.finished", 2)
        found = await delivered(runtime)

    assert found == ["hello", *sent]


async def test_what_it_thought_may_go_along() -> None:
    clock = ManualClock()
    thought = Reply(content=(Thinking(text="df says 99 %"), Text(text="Disk full.")))
    rules = replace(ELSEWHERE, include_reasoning=True)
    async with beating([thought], clock, rules) as runtime:
        clock.advance(30 * MINUTE)
        await seen(runtime, "turn.finished", 1)
        found = await delivered(runtime)

    assert found == ["Reasoning:\ndf says 99 %\n\nDisk full."]


async def test_restarts_and_downtime_keep_the_phase(tmp_path: Path) -> None:
    clock = ManualClock()
    async with beating([], clock, HeartbeatRules(), home=tmp_path) as runtime:
        began = clock.now()
        clock.advance(20 * MINUTE)
    async with beating([], clock, HeartbeatRules(), home=tmp_path) as runtime:
        first = await due(runtime)
    clock.advance(100 * MINUTE + 7)
    async with beating([], clock, HeartbeatRules(), home=tmp_path) as runtime:
        await seen(runtime, "heartbeat.skipped", 1)
        second, found = await due(runtime), await beats(runtime)

    half_an_hour = 30 * MINUTE * 1000
    assert first == [began + half_an_hour]
    assert second == [began + 5 * half_an_hour]
    assert len(found) == 1


async def test_another_interval_counts_from_the_last_run(tmp_path: Path) -> None:
    clock = ManualClock()
    async with beating([], clock, HeartbeatRules(), home=tmp_path) as runtime:
        clock.advance(30 * MINUTE)
        await seen(runtime, "heartbeat.skipped", 1)
        ran = clock.now()
    clock.advance(10 * MINUTE)
    async with beating([], clock, HeartbeatRules(every="1h"), home=tmp_path) as runtime:
        longer = await due(runtime)
    async with beating([], clock, HeartbeatRules(every=0), home=tmp_path) as runtime:
        none = await due(runtime)
    clock.advance(5 * MINUTE)
    async with beating([], clock, HeartbeatRules(every="5m"), home=tmp_path) as runtime:
        await seen(runtime, "heartbeat.skipped", 2)
        shorter, now = await due(runtime), clock.now()

    assert longer == [ran + 60 * MINUTE * 1000]
    assert none == []
    assert shorter == [now + 5 * MINUTE * 1000]


async def test_new_settings_keep_the_step_and_a_new_interval_counts_from_the_last_run() -> None:
    clock, model = ManualClock(), Scripted([])
    async with beating(model, clock, HeartbeatRules()) as runtime:
        clock.advance(30 * MINUTE)
        await seen(runtime, "heartbeat.skipped", 1)
        ran, found = clock.now(), list[list[int]]()
        for every in ("30m", "2h", "0", "2h"):
            clock.advance(10 * MINUTE)
            rules = HeartbeatRules(every=every, ack_max_chars=20)
            await runtime.reconfigure(agents=[Agent(model=model, heartbeat=rules)])
            found.append(await due(runtime))

    half_an_hour = 30 * MINUTE * 1000
    assert found == [[ran + half_an_hour], [ran + 4 * half_an_hour], [], [ran + 4 * half_an_hour]]


async def test_whoever_is_busy_asleep_or_halted_is_left_alone() -> None:
    clock, pause = ManualClock(), Pause("done")
    model = [says("", call("sleep", duration_ms=7_200_000, reason="rest")), pause]
    async with beating(model, clock) as runtime:
        await runtime.wait(await runtime.send("rest"))
        clock.advance(30 * MINUTE)
        await seen(runtime, "heartbeat.skipped", 1)
        receipt = await runtime.send("wake up")
        await pause.reached.wait()
        clock.advance(30 * MINUTE)
        await seen(runtime, "heartbeat.skipped", 2)
        pause.go_on.set()
        await runtime.wait(receipt)
        await runtime.halt("main")
        clock.advance(30 * MINUTE)
        await seen(runtime, "heartbeat.skipped", 3)
        found, left = await beats(runtime), await due(runtime)

    assert [reason for _, reason in found] == ["asleep", "busy", "halted"]
    assert left == [clock.now() + 30 * MINUTE * 1000]


async def test_quiet_hours_and_a_used_up_budget_are_reasons_too() -> None:
    clock, model = ManualClock(), Scripted([])
    agent = Agent(model=model, heartbeat=PROMPTED, budget=BudgetRules(turns_per_day=0))
    async with Runtime(agents=[agent], clock=clock) as runtime:
        await runtime.set_quiet(clock.now() + 40 * MINUTE * 1000)
        for count in (1, 2):
            clock.advance(30 * MINUTE)
            await seen(runtime, "heartbeat.skipped", count)
        found, left, last = await beats(runtime), await due(runtime), await outcome(runtime)

    assert found == [("suppressed", "quiet-hours"), ("suppressed", "budget")]
    assert left == [clock.now() + 30 * MINUTE * 1000]
    assert (last, model.requests) == ("skipped:budget", [])


async def test_a_file_goes_out_although_nothing_needs_attention(tmp_path: Path) -> None:
    clock = ManualClock()
    (tmp_path / "report.csv").write_text("a,b")
    step = says("", call("send_message", text="", files=["report.csv"]))
    async with beating([step, "HEARTBEAT_OK"], clock, ELSEWHERE, workspace=tmp_path) as runtime:
        clock.advance(30 * MINUTE)
        await seen(runtime, "turn.finished", 1)
        rows = await runtime.store.read("SELECT text, attachments FROM deliveries")

    ((text, files),) = rows
    assert text == ""
    assert "report.csv" in files


async def test_outside_its_hours_it_rests_unless_the_operator_asks() -> None:
    clock = ManualClock()
    never = DailyHours(start="00:00", end="00:01", timezone="UTC")
    rules = replace(PROMPTED, active_hours=never, every="7m")
    async with beating(["HEARTBEAT_OK"], clock, rules) as runtime:
        clock.advance(7 * MINUTE)
        await seen(runtime, "heartbeat.skipped", 1)
        refused = await ask(runtime, AskedBy.EVENT, "cron:daily")
        accepted = await ask(runtime)
        clock.advance(1)
        await seen(runtime, "turn.finished", 1)
        found = await beats(runtime)

    assert (refused.outcome, refused.reason) == ("suppressed", "active-hours")
    assert accepted.outcome == "queued"
    assert [reason for _, reason in found] == ["active-hours", "active-hours", "acknowledged"]


async def test_all_who_ask_within_a_moment_get_one_turn() -> None:
    clock, model = ManualClock(), Scripted(["HEARTBEAT_OK"])
    async with beating(model, clock, HeartbeatRules()) as runtime:
        await ask(runtime)
        clock.advance(0.1)
        await ask(runtime, AskedBy.EVENT, "cron:daily")
        clock.advance(0.15)
        await seen(runtime, "turn.finished", 1)
        found = await beats(runtime)

    (request,) = model.requests
    assert sorted(found) == [("done", "acknowledged"), ("merged", "acknowledged")]
    assert "asked for by cron:daily, too" in request.messages[-1].text


async def test_one_that_was_asked_for_waits_until_its_session_is_idle() -> None:
    clock, pause = ManualClock(), Pause("hello")
    async with beating([pause, "HEARTBEAT_OK"], clock) as runtime:
        receipt = await runtime.send("hi")
        await pause.reached.wait()
        await ask(runtime)
        clock.advance(1)
        waiting = await beats(runtime)
        pause.go_on.set()
        await runtime.wait(receipt)
        await seen(runtime, "turn.finished", 2)
        found = await beats(runtime)

    assert waiting == [("pending", None)]
    assert found == [("done", "acknowledged")]


async def test_events_wait_for_a_heartbeat_which_takes_them_along(tmp_path: Path) -> None:
    clock, model = ManualClock(), Scripted(["HEARTBEAT_OK"])
    async with beating(model, clock, HeartbeatRules(), workspace=tmp_path) as runtime:
        for text in ("the build is done", "the disk is full"):
            await runtime.tell(text, source="cron:watch")
        before = await runtime.store.read(
            "SELECT state FROM stimuli WHERE kind = 'system.event' ORDER BY id"
        )
        clock.advance(30 * MINUTE)
        await seen(runtime, "turn.finished", 1)
        rows = await runtime.store.read("SELECT kind, state FROM stimuli ORDER BY id")

    (request,) = model.requests
    lines = request.messages[-1].text.splitlines()
    assert [tuple(row) for row in before] == [("pending",)] * 2
    assert sorted(map(tuple, rows)) == [
        ("heartbeat", "done"),
        ("system.event", "merged"),
        ("system.event", "merged"),
    ]
    assert [line.partition("] ")[2] for line in lines if line.startswith("System: [")] == [
        "the build is done",
        "the disk is full",
    ]


async def test_where_no_heart_beats_an_event_opens_its_own_turn() -> None:
    clock, model = ManualClock(), Scripted(["noted"])
    async with beating(model, clock, HeartbeatRules(every=0)) as runtime:
        await runtime.tell("the disk is full")
        await seen(runtime, "turn.finished", 1)

    assert model.requests[0].messages[-1].text.endswith("the disk is full")


async def test_the_operator_turns_it_off_and_on_again() -> None:
    clock = ManualClock()
    async with beating([], clock, HeartbeatRules()) as runtime:
        heart, began = runtime.services.heartbeats, clock.now()
        clock.advance(10 * MINUTE)
        await heart.switch("main", is_on=False)
        off = await due(runtime)
        refused = await ask(runtime)
        clock.advance(70 * MINUTE)
        await heart.switch("main", is_on=True)
        on = await due(runtime)

    assert off == []
    assert (refused.outcome, refused.reason) == ("suppressed", "disabled")
    assert on == [began + 90 * MINUTE * 1000]


async def test_a_deleted_session_keeps_its_agents_heartbeat() -> None:
    clock = ManualClock()
    async with beating(["hello", "HEARTBEAT_OK"], clock) as runtime:
        await runtime.wait(await runtime.send("hi"))
        await runtime.delete("main")
        left = await due(runtime)
        clock.advance(30 * MINUTE)
        await seen(runtime, "turn.finished", 2)

    assert len(left) == 1


async def test_a_preempted_heartbeat_is_picked_up_again() -> None:
    clock, pause = ManualClock(), Pause("too late")
    model = Scripted([pause, "hello", "HEARTBEAT_OK"])
    async with beating(model, clock) as runtime:
        clock.advance(30 * MINUTE)
        await pause.reached.wait()
        await runtime.wait(await runtime.send("quick", priority="now"))
        await seen(runtime, "turn.finished", 3)
        found, left = await beats(runtime), await due(runtime)

    assert found == [("done", "acknowledged")]
    assert len(left) == 1
    assert "Look around." in model.requests[2].messages[-1].text


async def test_another_model_may_look_after_things() -> None:
    clock = ManualClock()
    rules = replace(PROMPTED, model="demo")
    async with beating(Scripted([]), clock, rules) as runtime:
        clock.advance(30 * MINUTE)
        await seen(runtime, "turn.finished", 1)
        found = await beats(runtime)

    assert [state for state, _ in found] == ["done"]


async def test_text_beside_its_tools_is_not_unread_either() -> None:
    clock = ManualClock()
    step = says("Let me see.", call("current_time"))
    async with beating([step, "HEARTBEAT_OK"], clock) as runtime:
        clock.advance(30 * MINUTE)
        await seen(runtime, "turn.finished", 1)
        ((unread,),) = await runtime.store.read(
            "SELECT unread FROM sessions WHERE key = :key", key=MAIN
        )

    assert unread == 0


async def test_what_the_operator_asks_for_is_told_from_what_the_operator_says() -> None:
    clock, model = ManualClock(), Scripted(lambda _: "HEARTBEAT_OK")
    async with beating(model, clock) as runtime:
        await runtime.wait(await runtime.send("hello"))
        await runtime.services.heartbeats.ask("main")
        clock.advance(1)
        await seen(runtime, "turn.finished", 2)
        clock.advance(30 * MINUTE)
        await seen(runtime, "turn.finished", 3)
        await runtime.send("/sleep 2h")
        await runtime.send("/wake")
        await seen(runtime, "turn.finished", 4)
        usage = await runtime.services.views.usage.page(UsageBy.SOURCE, None, None, None, 10)

    assert {one.key: one.turns for one in usage} == {
        "operator": 1,
        "heartbeat:operator": 1,
        "heartbeat": 1,
        "wake:operator": 1,
    }
