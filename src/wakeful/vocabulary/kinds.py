"""Kinds: one row says how a stimulus and the turn it opens behave.

Nothing else in the code asks where a stimulus came from: it reads a column of this table, so that
a new kind is a new row here and a room of its own.
"""

from collections.abc import Callable
from enum import StrEnum
from functools import cached_property

from wakeful.vocabulary.record import Record


class Origin(StrEnum):
    """Where a stimulus came from, as people are told; behaviour hangs on its kind."""

    USER = "user"
    HUB = "hub"
    A2A = "a2a"
    INBOX = "inbox"
    WEBHOOK = "webhook"
    APPROVAL = "approval"
    SUBAGENT = "subagent"
    CALLBACK = "callback"
    AUTOMATION = "automation"
    WAKE = "wake"
    TICK = "tick"
    HEARTBEAT = "heartbeat"
    SYSTEM = "system"


class Kind(StrEnum):
    """The key of a row: an origin, and what of it where there are several."""

    USER = "user"
    HUB = "hub"
    A2A = "a2a"
    A2A_REPLY = "a2a.reply"  # of a sister agent that was asked
    INBOX = "inbox"
    WEBHOOK = "webhook"
    APPROVAL = "approval"
    SUBAGENT_TASK = "subagent.task"
    SUBAGENT_ANNOUNCE = "subagent.announce"
    SUBAGENT_MESSAGE = "subagent.message"  # of another session, or a steer
    CALLBACK = "callback"
    AUTOMATION = "automation.bound"
    ISOLATED_AUTOMATION = "automation.isolated"
    WAKE = "wake"
    TICK = "tick"
    HEARTBEAT = "heartbeat"
    SYSTEM_EVENT = "system.event"
    DIGEST = "system.digest"
    POST = "system.post"
    COMPACTION = "system.compaction"
    MEMORY_FLUSH = "system.memory-flush"

    @cached_property
    def rule(self) -> "KindRule":
        return RULES[self]

    @cached_property
    def origin(self) -> Origin:
        return Origin(self.value.partition(".")[0])

    @cached_property
    def detail(self) -> str:
        """Return what distinguishes it within its origin; empty where nothing does."""
        return self.value.partition(".")[2]


class Joins(StrEnum):
    """What a kind does about a turn that runs."""

    BY_MODE = "by-mode"  # the session's queue mode decides
    WHEN_IDLE = "when-idle"  # it waits, unseen, until the session is idle
    HEARTBEAT = "heartbeat"  # it waits until a heartbeat takes it along


class Human(StrEnum):
    NO = "no"
    PARTLY = "partly"  # debounced; the session's answers go where it came from
    YES = "yes"  # a person spoke: counts for resets, too


class Held(StrEnum):
    """When a kind that is not `now` waits in the inbox until its agent asks for it."""

    NEVER = "never"
    ALWAYS = "always"
    WITHOUT_A_HOME = "without-a-home"  # where it names no session of its own


class Refused(StrEnum):
    """What becomes of a kind that the wake gate refuses."""

    PARKS = "parks"
    SUPPRESSED = "suppressed"  # its trigger sets itself again
    NEVER = "never"  # it asks no model: the gate has nothing to say


class Asleep(StrEnum):
    """What a kind does to a sleep that lets through what really came in."""

    WAKES = "wakes"  # except as `later`, which waits for the end of the sleep
    WAKES_NOW = "wakes-now"  # only as `now`
    RUNS = "runs"  # and leaves the sleep armed
    ENDS = "ends"  # it is the end of the sleep
    WAITS = "waits"
    SUPPRESSED = "suppressed"


class Answer(StrEnum):
    """Where a turn's answer goes."""

    ROUTE = "route"  # of the stimulus
    SESSION = "session"  # where its people are: the session's route, copied when filed
    TASK = "task"  # of the protocol that it came by
    REQUESTER = "requester"  # announced to the session that sent it
    SENDER = "sender"  # the session that waits for it
    ACTIVITY = "activity"
    TARGET = "target"  # as its settings say
    POST = "post"  # one line in the agent's main session
    ASKER = "asker"  # whoever asked for it; nobody, if the runtime did
    NOBODY = "nobody"


class Work(StrEnum):
    """What a turn does."""

    REPLY = "reply"
    COMPACT = "compact"  # a summary takes the place of the older part of the conversation
    REMEMBER = "remember"  # memories are written before that
    NOTHING = "nothing"  # no model is asked


class View(StrEnum):
    """How much of its session a turn's model sees."""

    FULL = "full"
    LIGHT = "light"  # only what the turn itself holds
    FRESH = "fresh"  # a transcript of its own
    BY_KEY = "by-key"  # full or light, as the settings of the session say


class Limit(StrEnum):
    """Which limit of wall time a turn has."""

    TURN = "turn"
    JOB = "job"
    RUN = "run"


class KindRule(Record):
    """One row of the table."""

    joins: Joins = Joins.WHEN_IDLE
    preempts: bool = False  # as `now`
    human: Human = Human.NO
    is_capped: bool = False  # counts against the cap of what waits
    is_guarded: bool = False  # by the storm guard
    held: Held = Held.NEVER
    refused: Refused = Refused.PARKS
    asleep: Asleep = Asleep.RUNS
    obeys_markers: bool = False  # kept out by the sleep that an agent announced in a room
    answer: Answer = Answer.SESSION
    work: Work = Work.REPLY
    view: View = View.FULL
    limit: Limit = Limit.TURN
    is_inner: bool = False  # filed by the runtime: inherits trust, makes no session
    makes: str = ""  # the word of the sessions that an inner kind may make all the same
    is_joinable: bool = True  # others may join the turn that it opened
    supersedes: bool = True  # mode `interrupt` ends what runs; no agent ends a person's turn
    is_of_its_own: bool = False  # an agent woke itself: it may do so only so often in a day
    acknowledges: bool = False  # its answer may be that nothing is wrong, which nobody must hear
    passes_quiet_hours: bool = False  # people, or an agent that waits for an answer
    prompts: bool = False  # whoever is at its door expects what comes of it
    is_throttled: bool = True  # its reply is held back if there were too many without a question
    shows_held: bool = False  # it is there to show what is held for the agent
    # The runtime opened it by itself: its turn in Activity begins with what waits in the inbox.
    takes_held: bool = False
    # As `now` from outside, it goes before what else strangers say.
    hurries: bool = False
    is_answer: bool = False  # to what an agent asked people: its turn may begin with a call
    answers_questions: bool = False  # whoever speaks so may answer what the agent asked
    is_scheduled: bool = False  # it may stand for an occurrence of an automation
    is_remembered: bool = True  # a long conversation is worth memories before it is compacted

    @property
    def is_debounced(self) -> bool:
        return self.human is not Human.NO

    @property
    def moves_route(self) -> bool:
        return self.human is not Human.NO

    @property
    def is_person(self) -> bool:
        return self.human is Human.YES


RULES: dict[Kind, KindRule] = {
    Kind.USER: KindRule(
        joins=Joins.BY_MODE,
        preempts=True,
        human=Human.YES,
        is_capped=True,
        asleep=Asleep.WAKES,
        answer=Answer.ROUTE,
        passes_quiet_hours=True,
        prompts=True,
        answers_questions=True,
    ),
    Kind.HUB: KindRule(
        joins=Joins.BY_MODE,
        preempts=True,
        human=Human.PARTLY,
        is_capped=True,
        is_guarded=True,
        asleep=Asleep.WAKES,
        obeys_markers=True,
        answer=Answer.ROUTE,
        prompts=True,
        answers_questions=True,
    ),
    Kind.A2A: KindRule(
        joins=Joins.BY_MODE,
        preempts=True,
        is_capped=True,
        is_guarded=True,
        asleep=Asleep.WAKES,
        answer=Answer.TASK,
        passes_quiet_hours=True,
        prompts=True,
        answers_questions=True,
    ),
    Kind.A2A_REPLY: KindRule(
        joins=Joins.BY_MODE, asleep=Asleep.WAKES, passes_quiet_hours=True, prompts=True
    ),
    Kind.INBOX: KindRule(
        preempts=True,
        is_guarded=True,
        held=Held.ALWAYS,
        asleep=Asleep.WAKES_NOW,
        answer=Answer.ACTIVITY,
        hurries=True,
    ),
    Kind.WEBHOOK: KindRule(
        preempts=True,
        is_guarded=True,
        held=Held.WITHOUT_A_HOME,
        asleep=Asleep.WAKES,
        hurries=True,
    ),
    Kind.APPROVAL: KindRule(
        asleep=Asleep.WAKES, is_inner=True, passes_quiet_hours=True, is_answer=True
    ),
    Kind.SUBAGENT_TASK: KindRule(
        answer=Answer.REQUESTER, limit=Limit.RUN, is_inner=True, makes="subagent"
    ),
    Kind.SUBAGENT_ANNOUNCE: KindRule(
        joins=Joins.BY_MODE,
        preempts=True,
        asleep=Asleep.WAKES,
        is_inner=True,
        supersedes=False,
    ),
    Kind.SUBAGENT_MESSAGE: KindRule(
        joins=Joins.BY_MODE,
        preempts=True,
        asleep=Asleep.WAKES,
        answer=Answer.SENDER,
        is_inner=True,
        supersedes=False,
    ),
    Kind.CALLBACK: KindRule(answer=Answer.ROUTE, obeys_markers=True, is_inner=True),
    Kind.AUTOMATION: KindRule(
        limit=Limit.JOB, is_inner=True, is_throttled=False, is_scheduled=True
    ),
    Kind.ISOLATED_AUTOMATION: KindRule(
        is_scheduled=True,
        answer=Answer.POST,
        view=View.FRESH,
        limit=Limit.JOB,
        is_inner=True,
        makes="automation",
        is_remembered=False,
    ),
    Kind.WAKE: KindRule(
        refused=Refused.SUPPRESSED,
        asleep=Asleep.ENDS,
        is_inner=True,
        is_of_its_own=True,
        takes_held=True,
    ),
    Kind.TICK: KindRule(
        view=View.BY_KEY,
        is_of_its_own=True,
        refused=Refused.SUPPRESSED,
        asleep=Asleep.SUPPRESSED,
        is_inner=True,
        is_remembered=False,
        takes_held=True,
    ),
    Kind.HEARTBEAT: KindRule(
        acknowledges=True,
        refused=Refused.SUPPRESSED,
        asleep=Asleep.SUPPRESSED,
        answer=Answer.TARGET,
        view=View.BY_KEY,
        is_inner=True,
        is_joinable=False,
        is_remembered=False,
        takes_held=True,
    ),
    Kind.SYSTEM_EVENT: KindRule(
        is_scheduled=True,
        joins=Joins.HEARTBEAT,
        asleep=Asleep.WAITS,
        answer=Answer.TARGET,
        is_inner=True,
        is_joinable=False,
        takes_held=True,
    ),
    Kind.DIGEST: KindRule(
        answer=Answer.ACTIVITY,
        is_inner=True,
        is_joinable=False,
        shows_held=True,
        takes_held=True,
    ),
    Kind.POST: KindRule(refused=Refused.NEVER, work=Work.NOTHING, is_inner=True, is_joinable=False),
    Kind.COMPACTION: KindRule(
        answer=Answer.ASKER,
        work=Work.COMPACT,
        is_inner=True,
        is_joinable=False,
        is_throttled=False,
    ),
    Kind.MEMORY_FLUSH: KindRule(
        answer=Answer.NOBODY,
        work=Work.REMEMBER,
        is_inner=True,
        is_joinable=False,
        is_remembered=False,
    ),
}


def kinds_where(test: Callable[[KindRule], bool]) -> list[str]:
    """Return the keys of the rows that pass a test, as statements name them."""
    return [kind.value for kind, rule in RULES.items() if test(rule)]


def kinds_of(origin: Origin) -> list[str]:
    return [kind.value for kind in Kind if kind.origin is origin]
