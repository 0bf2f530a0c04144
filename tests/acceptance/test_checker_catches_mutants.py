"""The checker is worth what it catches: every broken build breaks a named invariant.

Each mutant plays the scene that shows it, kill included; the unbroken build plays the very same
scene and passes.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.patience import patience
from tests.proofs.client import OUT, Client, gather
from tests.proofs.mutants import MUTANTS
from tests.proofs.neighbours import PLAN, neighbours, pry
from tests.proofs.process import Gone, Place, RigProcess, running
from tests.proofs.rig import DOOR, FALLBACK
from tests.proofs.stand_in import NAP_MS
from tests.proofs.trial import come_to_rest, judged
from wakeful.testing import ledger
from wakeful.testing.checker.check import Report

PATIENCE_S = patience(3)  # a broken build may never come to rest
STILL_S = patience(1)
LANE = "agent:main:a"
DAY_MS = 86_400_000
LONG_MS = 8 * DAY_MS  # after which nobody is asked any more

Play = Callable[[RigProcess, Client], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What is played, and how the process is killed in it, if at all."""

    play: Play
    again: Play | None = None  # in a second life
    fail: str = ""
    die: str = ""
    budget: str = ""
    env: Mapping[str, str] = field(default_factory=dict[str, str])


async def plain(rig: RigProcess, client: Client) -> None:
    for _ in range(3):
        await client.say(rig, "a", route=OUT)
        await rig.rest()


async def hooked(rig: RigProcess, client: Client) -> None:
    for _ in range(2):
        await client.send(rig, client.webhook())
        await rig.rest()


async def held_then_killed(rig: RigProcess, client: Client) -> None:
    await client.say(rig, "b", "gate=g+say")
    await rig.ask("reached", gate="g")
    await rig.ask("open_later", gate="g")
    await client.say(rig, "a", kind="inbox", source="feed")
    rig.kill()
    await rig.ended()


async def usurped(rig: RigProcess, client: Client) -> None:
    await client.say(rig, "a", "gate=g+look,act")
    await rig.ask("reached", gate="g")
    await rig.ask("usurp", session=LANE)
    await rig.ask("open", gate="g")
    await rig.ask("give_back", session=LANE)
    await rig.rest()


async def tool_dies(rig: RigProcess, client: Client) -> None:
    await client.say(rig, "a", "act.die")
    await rig.rest()


async def model_dies_after_a_tool(rig: RigProcess, client: Client) -> None:
    await client.say(rig, "a", "act,die+say")
    await rig.rest()


async def one_tool(rig: RigProcess, client: Client) -> None:
    await client.say(rig, "a", "act")
    await rig.rest()


async def compacted(rig: RigProcess, client: Client) -> None:
    for plan in ("long+say", "say"):
        await client.say(rig, "a", plan)
        await rig.rest()


async def steered(rig: RigProcess, client: Client) -> None:
    await client.say(rig, "a", "look.gate=g")
    await rig.ask("reached", gate="g")
    await client.say(rig, "a", "look")
    await rig.ask("open", gate="g")
    await rig.rest()


async def queued(rig: RigProcess, client: Client) -> None:
    await client.say(rig, "a", "gate=g+say", mode="queue")
    await rig.ask("reached", gate="g")
    for _ in range(4):
        await client.say(rig, "a", mode="queue")
    await rig.ask("open", gate="g")
    await rig.rest()


async def stopped_then_spoken_to(rig: RigProcess, client: Client) -> None:
    await client.say(rig, "a", "look&look.gate=g,look,look")
    await rig.ask("reached", gate="g")
    await client.tell(rig, "stop", session=LANE)
    await rig.ask("open", gate="g")
    await client.say(rig, "a")
    await rig.rest()


async def stumbling(rig: RigProcess, client: Client) -> None:
    await client.say(rig, "a", "tell&stumble", route=OUT)
    await rig.rest()


async def two_in_one_lane(rig: RigProcess, client: Client) -> None:
    await client.say(rig, "a", "gate=g+look", mode="queue")
    await rig.ask("reached", gate="g")
    await client.say(rig, "a", "gate=h+say", mode="queue")
    try:
        async with asyncio.timeout(0.5):
            await rig.ask("reached", gate="h")
    except TimeoutError:
        pass
    await gather(rig.ask("open", gate="h"), rig.ask("open", gate="g"))
    await rig.rest()


async def started_twice(rig: RigProcess, client: Client) -> None:
    await client.say(rig, "a")
    await rig.rest()
    await rig.stop()


async def timed(rig: RigProcess, client: Client) -> None:
    await client.say(rig, "a")  # a timer makes no session
    for in_ms in (200, 300):
        await client.set_timer(rig, "a", in_ms)
    await rig.ask("seen", kind="timer.fired", count=2)
    await rig.rest()


async def slept(rig: RigProcess, client: Client) -> None:
    """Sleep through nothing: a message ends one sleep, and another waits where one begins."""
    await client.say(rig, "a", "nap")
    await rig.rest()
    await client.say(rig, "a", "nap")
    await client.say(rig, "b", "look.gate=g&nap", mode="queue")
    await rig.ask("reached", gate="g")
    await client.say(rig, "b", mode="queue")
    await rig.ask("open", gate="g")
    await rig.rest()


async def slept_badly(rig: RigProcess, client: Client) -> None:
    """A message ends a sleep, and the time of its end comes when nobody sleeps any more."""
    await client.say(rig, "a", "nap")
    await rig.rest()
    await client.say(rig, "a")
    await rig.rest()
    client.place.move_clock(NAP_MS + 1000)
    await rig.ask("seen", kind="timer.fired", count=1)
    await rig.rest()


async def stormed(rig: RigProcess, client: Client) -> None:
    """One source wants more turns than it may have."""
    for _ in range(6):
        await client.say(rig, "a", kind="a2a", source="feed", trust="external")
    await rig.rest()


async def stormed_then_killed(rig: RigProcess, client: Client) -> None:
    await stormed(rig, client)
    rig.kill()
    await rig.ended()


async def misled(rig: RigProcess, client: Client) -> None:
    """The operator has the agent hear a stranger, whom its model obeys, also after a kill."""
    await client.say(rig, "a", "hear,die+act&put")
    await rig.rest()


async def pried(rig: RigProcess, client: Client) -> None:
    """Two owners come by the door and want to know what the other has said."""
    start = ledger.read(client.place.ledgers / "lives.jsonl")[-1]
    async with neighbours(rig, client.place) as (first, second):
        await first.say("m9x1", PLAN)
        await second.say("m9x3")
        await pry(second, first, f"{start['epoch']}-0")
    await rig.rest()


async def approved(rig: RigProcess, client: Client) -> None:
    """Something that was asked for is granted, and preempted while it runs."""
    await client.say(rig, "a", "dare.gate=g")
    await rig.rest()
    await client.tell(rig, "decide", grants=True)
    await rig.ask("reached", gate="g")
    await client.say(rig, "a", priority=0)
    await rig.ask("open", gate="g")
    await rig.rest()


async def asked_of_nobody(rig: RigProcess, client: Client) -> None:
    """Something is asked for, and nobody is there until its time is over."""
    await client.say(rig, "a", "dare")
    await rig.rest()
    client.place.move_clock(LONG_MS)


async def a_rest(rig: RigProcess, client: Client) -> None:
    await rig.rest()


async def read_in_turn(rig: RigProcess, client: Client) -> None:
    """Two sessions read what was left, one after the other; something is thrown away."""
    item = {"kind": "inbox", "trust": "external", "source": "feed"}
    for _ in range(2):
        await client.say(rig, "activity", **item)
    unwanted = await client.say(rig, "activity", **item, priority=2)
    assert unwanted is not None
    await client.tell(rig, "dismiss", stimulus=unwanted["stimulus_id"])
    for session in ("a", "b"):
        await client.say(rig, session, "check,look")
        await rig.rest()


async def crowded(rig: RigProcess, client: Client) -> None:
    """Twenty lanes want the last money, which is enough for five of them."""
    await gather(*(client.say(rig, f"r{number}", "dear+say") for number in range(20)))
    await rig.rest()


async def dear_on_two_days(rig: RigProcess, client: Client) -> None:
    """Most of a day's money is spent, and a little of the next; then the clock is moved back."""
    await client.say(rig, "a", "dear+look,dear+look,dear+look,dear+say")
    await rig.rest()
    client.place.move_clock(DAY_MS)
    await client.say(rig, "a")
    await rig.rest()
    client.place.move_clock(0)
    await client.say(rig, "b", "dear+look,dear+look,dear+look,dear+say")
    await rig.rest()


async def broken_off(rig: RigProcess, client: Client) -> None:
    await client.say(rig, "a", "broken+say")
    await rig.rest()


async def stood_in(rig: RigProcess, client: Client) -> None:
    await client.say(rig, "a", "cut+look,say")
    await rig.rest()


async def announced(rig: RigProcess, client: Client) -> None:
    """Somebody begins a chain of causes, which goes on until it has cost enough."""
    begun = await client.say(rig, "a", "dear+say")
    assert begun is not None
    await rig.rest()
    for _ in range(4):
        more = {"kind": "subagent.announce", "root_id": begun["stimulus_id"], "depth": 1}
        await client.say(rig, "a", "dear+say", **more)
        await rig.rest()


async def scheduled(rig: RigProcess, client: Client) -> None:
    """Jobs run once each: in a conversation, interrupted there, apart, and not at all."""
    await client.say(rig, "a")
    await client.schedule(rig, "a", "gate=g+look", in_ms=100)
    await rig.ask("reached", gate="g")
    await client.say(rig, "a", priority=0)
    await rig.ask("open", gate="g")
    await client.schedule(rig, "a", "silent+say", in_ms=100)
    made = await client.schedule(rig, None, "look", in_ms=100)
    await rig.ask("seen", kind="automation.ok", count=3)
    await client.tell(rig, "job", act="run", job=made["id"])
    await rig.ask("seen", kind="automation.ok", count=4)
    await rig.rest()


async def scheduled_for_a_day(rig: RigProcess, client: Client) -> None:
    await client.say(rig, "a")
    await client.schedule(rig, "a")
    await rig.rest()
    rig.kill()
    await rig.ended()
    client.place.move_clock(6 * HOUR_MS + 1_800_000)


async def made_up_for(rig: RigProcess, client: Client) -> None:
    await rig.ask("seen", kind="automation.ok", count=1)
    await rig.rest()


HOUR_MS = 3_600_000
LITTLE = '{"money_per_day": 0.1, "turns_per_day": null, "money_per_chain": null}'
SHORT = '{"money_per_day": 10, "turns_per_day": null, "money_per_chain": 0.05}'

SCENES: dict[str, Scene] = {
    "crowded": Scene(play=crowded, budget=LITTLE),
    "killed between reserve and settle": Scene(play=crowded, fail="close:kill:3", budget=LITTLE),
    "dear on two days": Scene(play=dear_on_two_days, budget=LITTLE),
    "broken off": Scene(play=broken_off),
    "stood in": Scene(play=stood_in, env={FALLBACK: "1"}),
    "announced": Scene(play=announced, budget=SHORT),
    "compacted": Scene(play=compacted),
    "plain": Scene(play=plain),
    "held, then killed": Scene(play=held_then_killed),
    "usurped": Scene(play=usurped),
    "killed after the ack's commit": Scene(play=plain, fail="accepted:kill:2"),
    "killed after a webhook's commit": Scene(play=hooked, fail="accepted:kill:2"),
    "killed before a commit": Scene(play=plain, die="before:17"),
    "tool dies": Scene(play=tool_dies),
    "model dies after a tool": Scene(play=model_dies_after_a_tool),
    "killed after the close": Scene(play=plain, fail="closed:kill:2"),
    "killed after an intent": Scene(play=one_tool, fail="intended:kill"),
    "killed before a delivery": Scene(play=plain, fail="send:kill:2"),
    "steered": Scene(play=steered),
    "queued": Scene(play=queued),
    "stopped, then spoken to": Scene(play=stopped_then_spoken_to),
    "stumbling": Scene(play=stumbling),
    "two in one lane": Scene(play=two_in_one_lane),
    "started twice": Scene(play=started_twice),
    "timed": Scene(play=timed),
    "slept": Scene(play=slept),
    "slept badly": Scene(play=slept_badly),
    "misled": Scene(play=misled),
    "pried": Scene(play=pried, env={DOOR: "open"}),
    "approved": Scene(play=approved),
    "left without an answer": Scene(play=asked_of_nobody, again=a_rest),
    "stormed in two lives": Scene(play=stormed_then_killed, again=stormed),
    "read in turn": Scene(play=read_in_turn),
    "scheduled": Scene(play=scheduled),
    "lost time": Scene(play=scheduled_for_a_day, again=made_up_for),
}

CATCHES: dict[str, tuple[str, str]] = {
    "reserve_after_the_call": ("crowded", "I15"),
    "settle_twice": ("plain", "I15"),
    "budget_in_memory": ("killed between reserve and settle", "I15"),
    "day_moves_back": ("dear on two days", "I15"),
    "usage_settled_again_on_resume": ("killed after an intent", "I13"),
    "broken_call_is_free": ("broken off", "I13"),
    "fallback_is_free": ("stood in", "I13"),
    "summary_not_counted": ("compacted", "I13"),
    "chain_budget_ignored": ("announced", "I14"),
    "own_work_counts_as_human": ("announced", "I14"),
    "depth_not_raised": ("left without an answer", "I14"),
    "acknowledge_before_commit": ("held, then killed", "I2"),
    "no_fencing": ("usurped", "I4"),
    "event_outside_the_transaction": ("killed after the ack's commit", "I10"),
    "delivery_id_forgotten": ("killed after a webhook's commit", "I2"),
    "dedup_in_memory": ("killed after the ack's commit", "I2"),
    "notify_before_commit": ("killed before a commit", "I9"),
    "intent_after_the_tool": ("tool dies", "I7"),
    "result_after_the_next_ask": ("model dies after a tool", "I6"),
    "double_settle": ("plain", "I1"),
    "settled_outside_the_closing_transaction": ("killed after the close", "I1"),
    "steer_lost": ("steered", "I1"),
    "entry_rewritten": ("plain", "I16"),
    "tool_rerun_on_resume": ("tool dies", "I7"),
    "reply_asked_twice": ("plain", "I6"),
    "answer_forgotten_on_resume": ("killed after an intent", "I8"),
    "delivery_settled_before_sent": ("killed before a delivery", "I11"),
    "order_ignored": ("queued", "I23"),
    "stop_ignored": ("stopped, then spoken to", "I22"),
    "counted_before_commit": ("stumbling", "I25"),
    "two_turns_at_once": ("two in one lane", "I5"),
    "skipped_calls_left_open": ("stopped, then spoken to", "I8"),
    "replay_skips_one": ("plain", "I9"),
    "store_replaced_by_an_empty_one": ("started twice", "I20"),
    "files_leaked": ("plain", "I24"),
    "stopped_turn_left_open": ("stopped, then spoken to", "I3"),
    "timers_fire_early": ("timed", "I12"),
    "compacted_without_a_view": ("compacted", "I17"),
    "timer_fires_twice": ("timed", "I12"),
    "pending_waker_overlooked": ("slept", "I19"),
    "sleep_outlasts_a_message": ("slept", "I19"),
    "nothing_wakes": ("slept", "I19"),
    "generation_ignored": ("slept badly", "I19"),
    "sleep_not_in_the_feed": ("slept", "I10"),
    "storms_ignored": ("stormed in two lives", "I14"),
    "storms_forgotten": ("stormed in two lives", "I14"),
    "taint_lost_on_resume": ("misled", "I21"),
    "strangers_trusted": ("misled", "I21"),
    "owner_not_in_the_query": ("pried", "I21"),
    "secret_in_an_error": ("pried", "I21"),
    "nobody_is_asked": ("approved", "I7"),
    "grant_used_twice": ("approved", "I7"),
    "items_read_twice": ("read in turn", "I1"),
    "counts_never_fall": ("read in turn", "I25"),
    "run_identified_by_turn": ("scheduled", "I12"),
    "run_row_beside_the_commit": ("scheduled", "I12"),
    "run_left_open": ("scheduled", "I12"),
    "prompt_forgotten": ("scheduled", "I16"),
    "missed_not_told": ("lost time", "I12"),
}


async def live(
    place: Place, client: Client, play: Play, env: dict[str, str], options: tuple[str, ...] = ()
) -> None:
    """Play for the length of one life, however it ends."""
    try:
        async with running(place, env=env, options=options) as rig:
            async with asyncio.timeout(PATIENCE_S):
                await play(rig, client)
            await rig.stop()
    except (Gone, TimeoutError):
        pass


async def played(scene: Scene, folder: Path, mutant: str = "") -> Report:
    """Play a scene, let the process come to rest, and return what the checker says."""
    place = Place(folder)
    client = Client(place)
    env = {"WAKEFUL_MUTANT": mutant, "RIG_BUDGET": scene.budget, **scene.env}
    options = ("--die", scene.die) if scene.die else ()
    await live(place, client, scene.play, {**env, "WAKEFUL_FAIL": scene.fail}, options)
    if scene.again is not None:
        await live(place, client, scene.again, env)
    await come_to_rest(place, client, env=env, patience_s=STILL_S)
    return await judged(place)


def test_every_mutant_is_played() -> None:
    in_power_cuts = {"commits_not_synced"}
    assert set(CATCHES) | in_power_cuts == set(MUTANTS)


@pytest.mark.parametrize("name", SCENES)
async def test_the_unbroken_build_keeps_every_promise(name: str, tmp_path: Path) -> None:
    report = await played(SCENES[name], tmp_path)

    assert not report.caught, report.table()


@pytest.mark.parametrize("mutant", CATCHES)
async def test_a_broken_build_is_caught_by_the_invariant_it_breaks(
    mutant: str, tmp_path: Path
) -> None:
    scene, invariant = CATCHES[mutant]

    report = await played(SCENES[scene], tmp_path, mutant)

    assert invariant in report.caught, report.table()
