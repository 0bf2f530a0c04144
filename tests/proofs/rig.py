"""The rig: a real process with a runtime, a stand-in model and test tools, driven over a pipe.

`python -m tests.proofs.rig --home DIR --ledgers DIR` reads one JSON command per line from its
standard input and answers each on its standard output, in any order, by its id. It stops like the
product does: the first SIGTERM drains, the second leaves at once. The end of its input counts as
SIGTERM, so it never outlives whoever started it.
"""

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, aclosing, suppress
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from tests.proofs import deaths, moved_clock
from tests.proofs.gates import Gates
from tests.proofs.hands import Hands
from tests.proofs.hooks import HOOKS
from tests.proofs.moved_clock import MovedClock
from tests.proofs.stand_in import NAP_MS, StandIn
from tests.proofs.witnesses import Receiver, Sampler, Watcher
from wakeful.access.tokens import NewToken
from wakeful.automations.wishes import Maker, Wish
from wakeful.broker import lane_rows
from wakeful.doors.http.door import HttpDoor
from wakeful.doors.http.server import HttpOptions
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.store.backend import Backend
from wakeful.store.database import Tx
from wakeful.store.opening import is_postgres
from wakeful.store.sqlite import SqliteBackend
from wakeful.testing import ledger
from wakeful.testing.ledger import Ledger
from wakeful.timers import timers
from wakeful.timers.timers import Timer
from wakeful.turn.agent import Agent
from wakeful.vocabulary.agent import ThrottleRules
from wakeful.vocabulary.budget import BudgetRules
from wakeful.vocabulary.clock import SystemClock
from wakeful.vocabulary.compacting import CompactionRules
from wakeful.vocabulary.entry import AssistantBody
from wakeful.vocabulary.errors import InvalidInput, NotFound, Transient
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.heartbeat import HeartbeatRules
from wakeful.vocabulary.proactive import ProactiveRules
from wakeful.vocabulary.queueing import Drop, Mode, QueueOverrides
from wakeful.vocabulary.stimulus import OPERATOR, Draft, Trust

MUTANT = "WAKEFUL_MUTANT"
BUDGET = "RIG_BUDGET"  # a variable: what each agent may spend
ENOUGH = '{"money_per_day": 1000, "turns_per_day": null, "money_per_chain": 100}'
SOON_MS = 600_000  # what is due later than that is not waited for
HEARTBEAT = "RIG_HEARTBEAT"  # a variable: how often the agents look after things
THROTTLE = "RIG_THROTTLE"  # a variable: what the agents may say unasked in an hour
TICKS = "RIG_TICKS"  # a variable: the agents wake by themselves once a minute
FALLBACK = "RIG_FALLBACK"  # a variable: another model is asked where the first breaks off
TICKING = ProactiveRules(enabled=True, tick_interval_secs=60, jitter_pct=0, initial_greeting=False)
DOOR = "RIG_DOOR"  # a variable: the HTTP door is open
AGENTS = ("main", "other")
ASKS = ("dare",)  # tools whose calls must be approved
COMPACTING = CompactionRules(reserve_tokens=600, reserve_tokens_floor=0, keep_recent_tokens=300)
DOORS = {  # beside `out`: one that gathers what comes quickly, one that is soon full
    "chatty": QueueOverrides(debounce_ms=20, debounce_max_ms=60, mode=Mode.COLLECT),
    "narrow": QueueOverrides(cap=2, drop=Drop.NEW, mode=Mode.FOLLOWUP),
}
LOOK_EVERY_S = 0.05  # while waiting for rest
NEWEST = 50  # entries among which a fork begins
LONGEST_LINE = 16 * 1024 * 1024

_UNREST = (
    "SELECT (SELECT COUNT(*) FROM stimuli WHERE state IN ('pending', 'claimed')), "
    "(SELECT COUNT(*) FROM lanes WHERE owner IS NOT NULL), "
    "(SELECT COUNT(*) FROM lanes WHERE ready_at < :soon), "
    "(SELECT COUNT(*) FROM deliveries WHERE state IN ('queued', 'sent')), "
    "(SELECT COUNT(*) FROM timers WHERE due_at <= :now)"
)
ME = Maker(owner=OPERATOR, trust=Trust.OPERATOR, name=OPERATOR, is_person=True)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode

Command = dict[str, Any]


class Rig:
    """Carries out commands; each answer leaves only after the runtime has answered."""

    def __init__(self, runtime: Runtime, gates: Gates) -> None:
        self._runtime = runtime
        self._gates = gates
        self._clock = SystemClock()
        self._acts: dict[str, Callable[[Command], Awaitable[object]]] = {
            "send": self._send,
            "webhook": self._webhook,
            "stop": self._stop,
            "abort": lambda command: runtime.abort(command["turn"]),
            "cancel": lambda command: runtime.cancel(command["stimulus"]),
            "dismiss": lambda command: runtime.dismiss(command["stimulus"]),
            "halt": lambda _: runtime.halt(),
            "resume": lambda _: runtime.resume(),
            "reset": lambda command: runtime.reset(command["session"]),
            "delete": lambda command: runtime.delete(
                command["session"], is_confirmed=command.get("confirmed", False)
            ),
            "schedule": self._schedule,
            "job": self._job,
            "pause_jobs": self._pause_jobs,
            "queue": self._queue,
            "sleep": self._sleep,
            "wake": self._wake,
            "beat": lambda _: runtime.services.heartbeats.ask("main"),
            "quiet": self._quiet,
            "see": self._see,
            "fork": self._fork,
            "decide": self._decide,
            "wait": self._wait,
            "rest": self._rest,
            "status": self._status,
            "open": self._open,
            "open_later": self._open_later,
            "reached": self._reached,
            "usurp": self._usurp,
            "give_back": self._give_back,
            "timer": self._timer,
            "seen": self._seen,
            "token": self._token,
        }

    async def obey(self, command: Command) -> None:
        """Carry out one command and answer it: ok, refused (nothing was written), or failed."""
        try:
            answer: dict[str, object] = {"ok": await self._acts[command["do"]](command)}
        except (InvalidInput, Transient) as error:
            answer = {"refused": f"{type(error).__name__}: {error}"}
        except Exception as error:
            logging.exception("the command %r failed", command["do"])
            answer = {"failed": f"{type(error).__name__}: {error}"}
        say({"id": command["id"], **answer})

    async def _send(self, command: Command) -> object:
        try:
            draft = msgspec.convert(command["draft"], Draft)
        except msgspec.ValidationError as error:
            raise InvalidInput("draft", str(error)) from error
        return await self._runtime.accept(draft)

    async def _webhook(self, command: Command) -> object:
        return await self._runtime.receive_webhook(
            command["hook"], command["headers"], command["body"].encode()
        )

    async def _stop(self, command: Command) -> object:
        return await self._runtime.stop(command["session"])

    async def _sleep(self, command: Command) -> object:
        return await self._runtime.services.sleep_acts.sleep(command["session"], NAP_MS)

    async def _wake(self, command: Command) -> object:
        """Wake a session, or everybody who sleeps."""
        asleep = await self._runtime.store.read("SELECT session_key FROM sleeps")
        wanted = [command["session"]] if "session" in command else [row[0] for row in asleep]
        return [await self._runtime.services.sleep_acts.wake(key) for key in wanted]

    async def _see(self, command: Command) -> object:
        """Read what happened so far; return how far people have read, by agent."""
        await self._runtime.see_activity()
        rows = await self._runtime.store.read("SELECT agent_id, seen_at FROM activity_seen")
        return {agent_id: seen_at for agent_id, seen_at in rows}

    async def _quiet(self, command: Command) -> object:
        """Keep the first agent quiet for so long, or end that."""
        for_ms: int | None = command["for_ms"]
        until = None if for_ms is None else self._runtime.clock.now() + for_ms
        return await self._runtime.set_quiet(until)

    async def _queue(self, command: Command) -> object:
        queue = msgspec.convert(command["queue"], QueueOverrides)
        return await self._runtime.set_queue(command["session"], queue)

    async def _fork(self, command: Command) -> object:
        """Go on from an answer in the middle of what was said last."""
        answers = [
            entry.id
            for entry in await self._runtime.entries(command["session"], limit=NEWEST)
            if isinstance(body := entry.content(), AssistantBody) and not body.message.tool_calls
        ]
        if not answers:
            raise InvalidInput("session", "has no answer yet")
        forked = await self._runtime.fork(
            command["session"], at=answers[len(answers) // 2], to=command["to"]
        )
        return forked.branch

    async def _decide(self, command: Command) -> object:
        """Approve or deny what was asked: that of a number, or the oldest that is open."""
        number = command.get("number")
        if number is None:
            asked = await self._runtime.store.read(
                "SELECT MIN(number) FROM approvals WHERE state = 'open'"
            )
            number = asked[0][0]
        if number is None:
            return None
        verb = self._runtime.approve if command["grants"] else self._runtime.deny
        return (await verb(number)).state

    async def _wait(self, command: Command) -> object:
        turn = await self._runtime.wait(command["turn"], command["timeout_s"])
        return None if turn is None else {"state": turn.state, "reply": turn.reply}

    async def _rest(self, command: Command) -> object:
        """Answer when nothing runs, waits or is due any more, or when the time is over."""
        until = self._clock.monotonic() + command["for_s"]
        while is_restless := any(await self._unrest()):
            if self._clock.monotonic() > until:
                break
            await self._clock.sleep(LOOK_EVERY_S)
        return {"is_at_rest": not is_restless, "position": self._runtime.metrics.position()}

    async def _status(self, command: Command) -> object:
        names = ("waiting", "running", "ready", "deliveries", "timers")
        return dict(zip(names, await self._unrest(), strict=True))

    async def _unrest(self) -> list[int]:
        now = self._runtime.clock.now()
        (row,) = await self._runtime.store.read(_UNREST, now=now, soon=now + SOON_MS)
        return list(row)

    async def _open(self, command: Command) -> object:
        return self._gates.open(command["gate"])

    async def _open_later(self, command: Command) -> object:
        return self._gates.open_later(command["gate"])

    async def _reached(self, command: Command) -> object:
        return await self._gates.reached(command["gate"])

    async def _timer(self, command: Command) -> object:
        """Set a timer that files a stimulus; answer when it is due, by the clock of the process."""
        draft = msgspec.convert(command["draft"], Draft)
        timer = Timer(
            id=command["timer"],
            due_at=self._runtime.clock.now() + command["in_ms"],
            kind="stimulus",
            target=draft.session_key,
            payload=_encode(draft).decode(),
        )
        await self._runtime.store.transact(lambda tx: timers.put(tx, timer))
        return timer.due_at

    async def _schedule(self, command: Command) -> object:
        """Make an automation; one that runs once says in how many milliseconds."""
        wish = dict(command["wish"])
        if "in_ms" in command:
            at = self._runtime.clock.now() + command["in_ms"]
            iso = datetime.fromtimestamp(at / 1_000, UTC).isoformat()
            wish["schedule"] = {"kind": "at", "at": iso}
        job = await self._runtime.services.automations.add(msgspec.convert(wish, Wish), ME)
        schedule = msgspec.to_builtins(job.schedule)
        return {"id": job.id, "next_run_at": job.next_run_at, "schedule": schedule}

    async def _job(self, command: Command) -> object:
        """Pause, resume, run or remove an automation."""
        act = getattr(self._runtime.services.automations, command["act"])
        return (await act(command["job"], ME)).id

    async def _pause_jobs(self, _command: Command) -> object:
        """Let nothing more fall due."""
        rows = await self._runtime.store.read("SELECT id FROM automations WHERE enabled = 1")
        for (job_id,) in rows:
            with suppress(NotFound):  # one that went with its session, or by itself
                await self._runtime.services.automations.pause(job_id, ME)
        return len(rows)

    async def _seen(self, command: Command) -> object:
        """Answer with the data of the first events of a kind, once there are so many."""
        start = (await self._runtime.cursor()).rpartition("-")[0] + "-0"
        found: list[object] = []
        async with aclosing(self._runtime.subscribe(topics=[command["kind"]], since=start)) as news:
            async for event in news:
                found.append(event.data)
                if len(found) == command["count"]:
                    break
        return found

    async def _token(self, command: Command) -> object:
        """Make a token and answer with its secret, and with where it opens the door."""
        wanted = NewToken(name=command["name"], scopes=tuple(command["scopes"]))
        made = await self._runtime.credentials.add(wanted, by="rig")
        assert self._runtime.http is not None
        return {"secret": made.secret, "port": self._runtime.http.port}

    async def _usurp(self, command: Command) -> object:
        """Claim a lane that this process holds, as another node would after a lapsed lease."""
        session_key: str = command["session"]

        def write(tx: Tx) -> str | None:
            lane = lane_rows.get(tx, session_key)
            if lane is None or lane.turn_id is None:
                return None
            epoch = lane_rows.claim(tx, lane, owner="another-node", turn_id=lane.turn_id)
            event = Event(
                kind="turn.resumed",
                session_key=session_key,
                turn_id=lane.turn_id,
                data={"epoch": epoch, "attempt": 1},
            )
            self._runtime.bus.publish(tx, event)
            return lane.turn_id

        return await self._runtime.store.transact(write, locks=[lane_rows.lock(session_key)])

    async def _give_back(self, command: Command) -> object:
        """Release a lane that was usurped, its turn still open."""
        session_key: str = command["session"]
        return await self._runtime.store.transact(
            lambda tx: lane_rows.release(tx, session_key, resume_at=tx.now, keeps_turn=True),
            locks=[lane_rows.lock(session_key)],
        )


async def serve(options: argparse.Namespace) -> None:
    """Run one life of the process, from its start to a graceful end."""
    folder: Path = options.ledgers
    lives = folder / "lives.jsonl"
    life = f"life{sum(line['what'] == 'start' for line in ledger.read(lives)) + 1}"
    journal = Ledger(lives, life=life)
    gates, clock = Gates(folder / "gates"), MovedClock(folder / moved_clock.FILE)
    hands = Hands(Ledger(folder / "tools.jsonl", life=life, clock=clock), gates, clock)
    model = StandIn(Ledger(folder / "model.jsonl", life=life, clock=clock), gates, clock)
    budget = msgspec.json.decode(os.environ.get(BUDGET) or ENOUGH, type=BudgetRules)
    present = [agent for agent in AGENTS if agent not in options.absent.split(",")]
    runtime = Runtime(
        agents=[
            Agent(
                id=agent,
                model=model,
                fallback_models=[model.substitute()] if os.environ.get(FALLBACK) else (),
                tools=hands.tools(),
                compaction=COMPACTING,
                budget=budget,
                proactive=TICKING if os.environ.get(TICKS) else ProactiveRules(),
                heartbeat=HeartbeatRules(every=os.environ.get(HEARTBEAT, "30m")),
                approvals=dict.fromkeys(ASKS, "ask"),
                throttle=ThrottleRules(per_hour=int(os.environ.get(THROTTLE, "0")) or None),
            )
            for agent in present
        ],
        settings=Settings(
            home=options.home,
            database=options.database,
            drain_s=options.drain_s,
            watchdog_s=options.watchdog_s,
            doors=DOORS,
            hooks=HOOKS,
        ),
        doors=dict.fromkeys(("out", *DOORS), Receiver(folder / "receiver.jsonl", life)),
        clock=clock,
        http=HttpDoor(HttpOptions(port=0)) if os.environ.get(DOOR) else None,
    )
    sampler = Sampler(folder / "samples.jsonl", life, clock)
    async with asyncio.TaskGroup() as group:
        async with runtime:
            epoch, _, position = (await runtime.cursor()).rpartition("-")
            journal.note(
                "start",
                pid=os.getpid(),
                epoch=epoch,
                position=int(position),
                agents=present,
                asks=ASKS,
                budget=msgspec.structs.asdict(budget),
            )
            background = [
                Watcher(folder / "watcher-steady.jsonl", life).run(runtime),
                Watcher(folder / "watcher-flaky.jsonl", life, leaves_after=5).run(runtime),
                sampler.run(runtime),
                take_commands(Rig(runtime, gates)),
            ]
            tasks = [group.create_task(part) for part in background]
            say({"ready": life})
            await runtime.serve()
        sampler.sample(runtime)
        for task in tasks:
            task.cancel()
    journal.note("stop")


async def take_commands(rig: Rig) -> None:
    """Read commands until the input ends; all of them run at once."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LONGEST_LINE)
    async with AsyncExitStack() as stack:
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
        )
        stack.callback(transport.close)
        async with asyncio.TaskGroup() as group:
            while line := await reader.readline():
                command = _decode(line)
                group.create_task(rig.obey(command), name=f"command {command['do']}")
            os.kill(os.getpid(), signal.SIGTERM)


def say(answer: dict[str, object]) -> None:
    left = _encode(answer) + b"\n"
    while left:
        left = left[os.write(1, left) :]


def _backend(options: argparse.Namespace) -> type[Backend]:
    if not is_postgres(options.database):
        return SqliteBackend
    return import_module("wakeful.store.postgres").PostgresBackend


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.proofs.rig", description=__doc__)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--ledgers", type=Path, required=True)
    parser.add_argument("--database", default="sqlite")
    parser.add_argument("--drain-s", type=float, default=5.0)
    parser.add_argument("--watchdog-s", type=float, default=0.0)
    parser.add_argument("--absent", default="", help="agents that this life does not have")
    parser.add_argument("--die", default="", metavar="before:N|after:N")
    options = parser.parse_args()
    options.ledgers.mkdir(parents=True, exist_ok=True)
    if options.die:  # before any mutant: what a broken build does too early, it has done by then
        deaths.arm(options.die, _backend(options), Ledger(options.ledgers / "faults.jsonl"))
    if mutant := os.environ.get(MUTANT):
        import_module("tests.proofs.mutants").apply(mutant)
    asyncio.run(serve(options))


if __name__ == "__main__":
    main()
