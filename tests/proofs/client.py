"""The load client: sends, repeats, stops, and writes down what it was told, outside the process."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any

from tests.proofs.hooks import ALTERED, FORGED, NAME, SESSION, posted
from tests.proofs.plans import marked
from tests.proofs.process import Failed, Gone, Place, Refused, RigProcess
from wakeful.testing.ledger import Ledger
from wakeful.vocabulary.clock import SystemClock

PLANS = (
    "",
    "",
    "",
    "look",
    "look&look&look",
    "act",
    "put",
    "tell",
    "look&act&put&tell&look",
    "look,act,put",
    "slow+say",
    "slow+look,slow+act.slow",
    "act.fail,put",
    "stumble,look",
    "nothing",
    "look,long+say",
    "silent+say",
    "look.slow&look.slow&look,put.slow",
    "act.slow,act.slow,act",
    "nap",
    "look,nap",
    "slow+nap",
    "tell,tell&tell",
    "transient+look",
    "garbled+say",
    "broken+look",
    "refuse+say",
    "act,hear&act,put",
    "look&hear,slow+tell",
    "dare",
    "look&dare.slow&act,look",
    "dare&dare,act",
    "check,look",
    "look&check&act,check.later",
    "slow+check.later,tell",
)
# What has found faults before: tools that do not let go, and steps that end the process twice.
HARD_PLANS = ("act.stubborn,look", "look.stubborn", "put.stubborn&look")
SUSPECT_PLAN, SUSPECTS = "die-twice+say", 0.003
MODES = (None, None, None, "steer", "followup", "collect", "queue", "steer-backlog", "interrupt")
PRIORITIES = (1, 1, 1, 1, 1, 2, 0)  # next, mostly
KINDS = (
    "user",
    "user",
    "user",
    "user",
    "a2a",
    "automation.bound",
    "subagent.message",
    "inbox",
    "webhook",
)
# Where what sources leave is held, and the sessions that they may name.
INBOXES = ("activity", "activity", "agent:other:activity", "main", "s1")
OUT: dict[str, str] = {"door": "out", "address": "somebody"}
DOORS = (None, None, "out", "out", "chatty", "narrow")
SHARES = {
    "stop": 0.02,
    "repeat": 0.05,
    "refused": 0.02,
    "cancel": 0.02,
    "abort": 0.02,
    "halt": 0.003,
    "reset": 0.01,
    "fork": 0.02,
    "delete": 0.01,
    "queue": 0.02,
    "sleep": 0.02,
    "wake": 0.01,
    "beat": 0.005,
    "decide": 0.1,
    "see": 0.01,
    "dismiss": 0.01,
    "schedule": 0.03,
    "job": 0.03,
}
QUEUES: tuple[dict[str, object], ...] = (
    {},
    {"mode": "collect", "debounce_ms": 30, "debounce_max_ms": 90},
    {"mode": "queue", "debounce_ms": 0},
    {"mode": "interrupt"},
    {"cap": 3, "drop": "old"},
    {"cap": 5, "drop": "summarize"},
)
JOB_ACTS = ("run", "run", "pause", "resume", "remove")
HALTED_S = 0.03
GRANTED = 0.7  # of what is decided
QUIET = 0.01  # of what is done where quiet hours come and go
QUIET_MS = (None, 150, 40_000)  # ended by hand, by themselves, or when the clock leaps
LATER_MS = 40

Sent = dict[str, Any]


class Client:
    """Remembers what it asked; what was never answered is asked again with the same key."""

    def __init__(self, place: Place, seed: int = 0) -> None:
        self.place = place
        self._lines = Ledger(place.ledgers / "client.jsonl")
        self._seed = seed
        self._count = 0
        self._unknown: list[Sent] = []
        self._accepted = 0
        self._wanted: list[tuple[int, asyncio.Event]] = []
        self.jobs: list[str] = []
        self._may_be_halted = False
        self._may_be_quiet = False
        self.may_sleep = False  # somebody may be asleep for whom something waits

    def draft(self, session: str, plan: str = "", mode: object = None, **fields: object) -> Sent:
        """Return a message with a mark that is its dedup key, too."""
        self._count += 1
        mark = f"m{self._seed}x{self._count}"
        return {
            "session_key": session if session.startswith("agent:") else f"agent:main:{session}",
            "trust": "operator",
            "owner": "operator",
            "queue": {"mode": mode},
            "text": marked(mark, plan),
            "dedup_key": mark,
            "dedup_window_s": 86_400,
            **fields,
        }

    async def send(self, rig: RigProcess, draft: Sent) -> dict[str, Any] | None:
        """Send a draft; None if it was refused, or if nobody knows what became of it."""
        self._lines.note("request", do="send", draft=draft)
        try:
            receipt: dict[str, Any] = await _asked(rig, draft)
        except Refused as refused:
            self._lines.note("answer", do="send", draft=draft, refused=str(refused))
            return None
        except (Gone, Failed) as lost:
            self._lines.note("answer", do="send", draft=draft, unknown=repr(lost))
            self._unknown.append(draft)
            return None
        self._lines.note("answer", do="send", draft=draft, ok=receipt)
        self._accepted += 1
        for count, reached in self._wanted:
            if count <= self._accepted:
                reached.set()
        return receipt

    def webhook(self, plan: str = "") -> Sent:
        """Return a webhook with a mark that is the id of its delivery, too."""
        fields = {"kind": "webhook", "trust": "external", "source": NAME}
        return {**self.draft(SESSION, plan, **fields), "hook": NAME}

    async def say(
        self, rig: RigProcess, session: str, plan: str = "", **fields: object
    ) -> dict[str, Any] | None:
        return await self.send(rig, self.draft(session, plan, **fields))

    async def set_timer(
        self, rig: RigProcess, session: str, in_ms: int, plan: str = "", **fields: object
    ) -> Any:
        """Set a timer that says something in a session later; return when it is due."""
        draft = self.draft(session, plan, **{"kind": "automation.bound", **fields})
        name = f"timer-{draft['dedup_key']}"
        return await self.tell(rig, "timer", timer=name, in_ms=in_ms, draft=draft)

    async def schedule(
        self, rig: RigProcess, session: str | None, plan: str = "", **fields: object
    ) -> Any:
        """Make an automation, bound to a session or isolated; `in_ms` is when it runs once."""
        draft = self.draft(session or "main", plan)
        place = {"isolated": True} if session is None else {"session_key": draft["session_key"]}
        wish: Sent = {"name": draft["dedup_key"], "message": draft["text"], **place}
        more = {"in_ms": fields.pop("in_ms")} if "in_ms" in fields else {}
        wish |= {"schedule": {"kind": "every", "every_s": 3_600}, **fields}
        made = await self.tell(rig, "schedule", wish=wish, **more)
        if made is not None:
            self.jobs.append(made["id"])
        return made

    async def has_sent(self, count: int) -> None:
        """Return when so many more messages were accepted."""
        reached = asyncio.Event()
        self._wanted.append((self._accepted + count, reached))
        await reached.wait()

    async def come_back(self, rig: RigProcess) -> None:
        """Do after a kill what a client does: repeat what was never answered, lift its halt."""
        unknown, self._unknown = self._unknown, []
        await gather(*(self.send(rig, draft) for draft in unknown))
        if self._may_be_halted:
            self._may_be_halted = False  # somebody may halt again while this is under way
            is_lost = await self.tell(rig, "resume") is None
            self._may_be_halted = is_lost or self._may_be_halted
        if self._may_be_quiet:
            self._may_be_quiet = False
            is_lost = await self.tell(rig, "quiet", for_ms=None) is None
            self._may_be_quiet = is_lost or self._may_be_quiet
        if self.may_sleep:  # what waits for the end of a sleep should come to its end
            await self.tell(rig, "wake")

    async def tell(self, rig: RigProcess, do: str, **fields: object) -> Any:
        """Give another command (stop, halt, resume); None if nobody knows what became of it."""
        self._lines.note("request", do=do, **fields)
        self._may_be_halted = do == "halt" or self._may_be_halted
        self._may_be_quiet = bool(fields.get("for_ms")) or self._may_be_quiet
        try:
            answer = await rig.ask(do, **fields)
        except (Gone, Failed, Refused) as lost:
            self._lines.note("answer", do=do, unknown=repr(lost), **fields)
            return None
        self._lines.note("answer", do=do, ok=answer, **fields)
        return answer


class Load:
    """A random mix of everything, the same for the same seed."""

    def __init__(
        self,
        client: Client,
        seed: int,
        sessions: int = 12,
        *,
        is_hard: bool = False,
        has_quiet_hours: bool = False,
    ) -> None:
        self._client = client
        client.may_sleep = True
        self._plans = (*PLANS, *HARD_PLANS) if is_hard else PLANS
        self.suspects = SUSPECTS if is_hard else 0.0  # the share of steps that kill twice
        self.deaths = 0  # how often what was drafted kills the process that runs it
        self._chance = random.Random(seed)
        self._sessions = ["main", *(f"s{number}" for number in range(1, sessions))]
        self._sessions += [f"agent:other:o{number}" for number in range(sessions // 4)]
        self._shares = {**SHARES, "quiet": QUIET} if has_quiet_hours else SHARES

    async def run(self, rig: RigProcess, count: int, workers: int = 8) -> None:
        """Send `count` messages, several at once; returns early once the process is gone."""
        drafts = [self._draft() for _ in range(count)]
        waiting = iter(drafts)

        async def work() -> None:
            for draft in waiting:
                if rig.is_gone:
                    return
                await self._one(rig, draft)

        await gather(*(work() for _ in range(workers)))

    async def _one(self, rig: RigProcess, draft: Sent) -> None:
        client, what = self._client, self._what()
        if what in ("cancel", "abort", "dismiss"):
            await self._take_back(rig, draft, what)
        elif what == "repeat":
            await gather(*(client.send(rig, draft) for _ in range(2)))
            if "hook" in draft:
                await client.send(rig, {**draft, "hook": ALTERED})
        elif what == "halt":
            await self._halt(rig)
        elif what == "decide":
            await client.tell(rig, "decide", grants=self._chance.random() < GRANTED)
        elif what == "quiet":
            await client.tell(rig, "quiet", for_ms=self._chance.choice(QUIET_MS))
        elif what == "send":
            await client.send(rig, draft)
        elif what == "refused":
            wrong = {"hook": FORGED} if "hook" in draft else {"depth": -1}
            await client.send(rig, {**draft, **wrong})
        else:
            await self._change(rig, draft["session_key"], what)

    async def _take_back(self, rig: RigProcess, draft: Sent, what: str) -> None:
        """Send something and take it back: the stimulus while it waits, or its turn."""
        receipt = await self._client.send(rig, draft)
        if receipt is not None and what in ("cancel", "dismiss"):
            await self._client.tell(rig, what, stimulus=receipt["stimulus_id"])
        elif receipt is not None and receipt["turn_id"] is not None:
            await self._client.tell(rig, "abort", turn=receipt["turn_id"])

    async def _change(self, rig: RigProcess, session: str, what: str) -> None:
        """Do something to a whole session: stop, reset, delete, fork, or another queue."""
        if what == "fork":
            await self._fork(rig, session)
        elif what in ("schedule", "job"):
            await self._automate(rig, session, what)
        elif what == "queue":
            queue = self._chance.choice(QUEUES)
            await self._client.tell(rig, "queue", session=session, queue=queue)
        else:
            confirmed = {"confirmed": True} if what == "delete" else {}
            await self._client.tell(rig, what, session=session, **confirmed)

    async def _automate(self, rig: RigProcess, session: str, what: str) -> None:
        """Make an automation that runs once, soon, or every second; or do something to one."""
        pick = self._chance.choice
        if what == "job":
            if self._client.jobs:
                job = pick(self._client.jobs)
                await self._client.tell(rig, "job", act=pick(JOB_ACTS), job=job)
            return
        fields: Sent = pick(
            (
                {"in_ms": 50},
                {"in_ms": 20, "delete_after_run": True},
                {
                    "schedule": {"kind": "every", "every_s": 1},
                    "missed": pick(("skip", "once")),
                },
                {"schedule": {"kind": "every", "every_s": 1}, "overlap": "queue"},
            )
        )
        await self._client.schedule(rig, pick((session, session, None)), pick(PLANS), **fields)

    def _what(self) -> str:
        dice = self._chance.random()
        for what, share in self._shares.items():
            dice -= share
            if dice < 0:
                return what
        return "send"

    async def _fork(self, rig: RigProcess, session: str) -> None:
        """Fork into a new session, which is spoken to from then on, or in the same one."""
        name = self._chance.choice((None, f"f{len(self._sessions)}"))
        to = None if name is None else f"agent:main:{name}"
        told = await self._client.tell(rig, "fork", session=session, to=to)
        if told is not None and name is not None:
            self._sessions.append(name)

    async def _halt(self, rig: RigProcess) -> None:
        """Halt everything for a moment."""
        clock = SystemClock()
        if await self._client.tell(rig, "halt") is not None:
            await clock.sleep(HALTED_S)
        await self._client.tell(rig, "resume")

    def _draft(self) -> Sent:
        pick = self._chance.choice
        fields: Sent = {
            "priority": pick(PRIORITIES),
            "kind": pick(KINDS),
            "source": pick(("operator", "feed", "friend")),
        }
        mode = pick(MODES)
        if (door := pick(DOORS)) is not None:
            fields["route"] = {"door": door, "address": pick(("somebody", "everybody"))}
        if fields["kind"] in ("inbox", "webhook", "a2a"):
            fields["trust"] = "external"
        if self._chance.random() < 0.03:
            fields["not_before"] = SystemClock().now() + LATER_MS
        if self._chance.random() < 0.02:
            fields["expires_at"] = SystemClock().now() + LATER_MS * 2
        plan = pick(self._plans)
        if self._chance.random() < self.suspects:
            plan = SUSPECT_PLAN
            self.deaths += 2
        if fields["kind"] == "webhook" and fields["source"] == "feed":
            return self._client.webhook(plan)
        session = pick(INBOXES) if fields["kind"] == "inbox" else pick(self._sessions)
        return self._client.draft(session, plan, mode, **fields)


async def _asked(rig: RigProcess, draft: Sent) -> Any:
    """Send a draft as it is, or as the webhook that it is meant to be."""
    if "hook" in draft:
        return await rig.ask("webhook", **posted(draft))
    return await rig.ask("send", draft=draft)


async def gather(*parts: Any) -> Sequence[Any]:
    """Run parts at once and return their results in order."""
    async with asyncio.TaskGroup() as group:
        tasks: list[asyncio.Task[Any]] = [group.create_task(part) for part in parts]
    return [task.result() for task in tasks]
