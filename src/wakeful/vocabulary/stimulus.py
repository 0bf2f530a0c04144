"""A stimulus: anything that may wake an agent."""

from base64 import b64decode
from enum import IntEnum, StrEnum

from wakeful.vocabulary.kinds import Kind, Origin
from wakeful.vocabulary.queueing import NO_OVERRIDES, Mode, QueueOverrides
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.route import Route


class Priority(IntEnum):
    NOW = 0
    NEXT = 1
    LATER = 2


class Trust(StrEnum):
    OPERATOR = "operator"
    EXTERNAL = "external"  # its text is data, never instruction


class State(StrEnum):
    PENDING = "pending"
    HELD = "held"  # in the inbox, until the agent asks for it
    PARKED = "parked"  # may not run now; looked at again later
    CLAIMED = "claimed"
    DONE = "done"
    MERGED = "merged"  # joined a turn that another stimulus opened
    FAILED = "failed"
    CANCELLED = "cancelled"
    SUPPRESSED = "suppressed"
    EXPIRED = "expired"


class Place(IntEnum):
    INTERRUPTED = 0
    STEER = 1  # found no boundary in its turn
    REST = 2


WAITING = frozenset({State.PENDING, State.HELD, State.PARKED})
TERMINAL = frozenset(State) - WAITING - {State.CLAIMED}

# The whole life of a stimulus; any other move is a bug.
MOVES: dict[State, frozenset[State]] = {
    State.PENDING: frozenset(
        {
            State.HELD,
            State.PARKED,
            State.CLAIMED,
            State.SUPPRESSED,
            State.EXPIRED,
            State.CANCELLED,
            State.FAILED,
        }
    ),
    State.HELD: frozenset(
        {State.CLAIMED, State.MERGED, State.SUPPRESSED, State.EXPIRED, State.CANCELLED}
    ),
    State.PARKED: frozenset(
        {
            State.PENDING,
            State.CLAIMED,
            State.SUPPRESSED,
            State.EXPIRED,
            State.CANCELLED,
            State.FAILED,
        }
    ),
    State.CLAIMED: frozenset(
        {State.PENDING, State.DONE, State.MERGED, State.FAILED, State.CANCELLED}
    ),
    **{state: frozenset() for state in TERMINAL},
}

ID_LENGTH = 16  # digits of a hash by which a model names an attachment

OPERATOR = "operator"  # the owner who may enter every session


class Attachment(Record, forbid_unknown_fields=True):
    """Something that came along with the text."""

    name: str
    media_type: str
    data: str  # base64


class KeptAttachment(Record):
    """An attachment as the ledgers name it; its bytes are kept apart, once."""

    name: str
    media_type: str
    size: int  # bytes
    hash: str  # SHA-256 of the bytes

    @property
    def id(self) -> str:
        """What a model calls it; nobody else's words stand in it."""
        return self.hash[:ID_LENGTH]


class ReadyAttachment(KeptAttachment):
    """An attachment that was read and measured, so that the write has nothing left to do."""

    data: str  # base64

    def content(self) -> bytes:
        """Return the bytes."""
        return b64decode(self.data)


class StormLimits(Record):
    """How many turns one source may open in a session, and in how many seconds."""

    turns: int = 8
    window_s: int = 60


class StormOverrides(Record):
    """The limits of one source; None: as everybody's."""

    turns: int | None = None
    window_s: int | None = None

    def over(self, limits: StormLimits) -> StormLimits:
        """Return what holds for the source where everybody else has these limits."""
        return StormLimits(
            turns=limits.turns if self.turns is None else self.turns,
            window_s=limits.window_s if self.window_s is None else self.window_s,
        )


NO_STORM_OVERRIDES = StormOverrides()


class WaitingCaps(Record):
    """How many items may wait in the inbox before another one is refused."""

    of_source: int
    in_all: int


class Draft(Record):
    """What a door, a trigger or a tool hands to intake.

    Trust and owner have no default: whoever files something says whose word it is.
    """

    session_key: str
    trust: Trust
    owner: str  # whose sessions it may enter, and whose a new one is
    text: str = ""
    kind: Kind = Kind.USER
    priority: Priority = Priority.NEXT
    source: str = "operator"
    scope: str = "operator"  # the credential; dedup keys are unique within (scope, source)
    dedup_key: str | None = None
    dedup_window_s: int | None = None  # None: for as long as the ledger keeps the stimulus
    body_hash: str | None = None  # of the bytes that came; None: of what the draft says
    cause_id: str | None = None
    root_id: str | None = None  # first stimulus of the causal chain
    depth: int = 0
    route: Route | None = None
    queue: QueueOverrides = NO_OVERRIDES  # for this one alone
    debounce_ms: int = 0  # its door's, where no level of settings says otherwise
    not_before: int | None = None
    expires_at: int | None = None
    attachments: tuple[ReadyAttachment, ...] = ()
    binding: str | None = None  # what sent it to its session
    begins: str | None = None  # the command that makes it the first of a new transcript
    makes_for: str | None = None  # whose a new session is, if not the owner's
    display_name: str | None = None  # of the peer or room; None: its door does not say
    subject: str | None = None
    message_id: str | None = None  # what its door calls it: an answer names it
    is_taken_along: bool = False  # it waits until a heartbeat takes it along
    storm: StormOverrides = NO_STORM_OVERRIDES  # of its source
    caps: WaitingCaps | None = None  # beyond which it is refused if it would wait; None: never
    ignores_quiet_hours: bool = False  # a person wants it whatever the hour

    @property
    def mode(self) -> Mode | None:
        return self.queue.mode


class Stimulus(Record):
    """A stimulus as the ledger keeps it."""

    id: str
    session_key: str
    agent_id: str
    kind: Kind
    priority: Priority
    place: Place
    seq: int
    text: str
    attachments: tuple[KeptAttachment, ...]
    trust: Trust
    source: str
    scope: str
    cause_id: str | None
    root_id: str
    depth: int
    route: Route | None
    mode: Mode | None
    not_before: int  # earliest start, as its sender wished
    due_at: int  # when the lane looks at it next
    expires_at: int | None
    is_debounced: bool
    state: State
    state_reason: str | None
    turn_id: str | None
    preemptions: int
    accepted_at: int
    settled_at: int | None
    message_id: str | None = None
    ignores_quiet_hours: bool = False  # asked for by hand, or a person's own job
    dedup_key: str | None = None
    claimed_at: int | None = None  # when it was given to a turn
    in_inbox: bool = False  # it is shown there, waiting or not

    @property
    def origin(self) -> Origin:
        return self.kind.origin


class Outcome(StrEnum):
    STARTED = "started"
    DEBOUNCING = "debouncing"
    STEERED = "steered"
    QUEUED = "queued"
    HELD = "held"
    PARKED = "parked"
    SUPPRESSED = "suppressed"
    DUPLICATE = "duplicate"
    COMMAND = "command"  # it was said to the runtime itself, and done
    OVERHEARD = "overheard"  # it was said in a room to others; the next turn there reads it
    REFUSED = "refused"  # nothing was kept: too much of its source waits already


class Receipt(Record):
    """What the sender learns at once, after the commit: what is expected to happen now.

    A command is answered by its receipt: `reply` has the words, and `stimulus_id` is empty unless
    the command filed something for the agent.
    """

    stimulus_id: str
    session_key: str
    outcome: Outcome
    reply: str | None = None
    turn_id: str | None = None
    position: int | None = None
    reason: str | None = None  # of a duplicate: the outcome that the first sender was told
    duplicate_of: str | None = None
    first_reason: str | None = None  # of a duplicate: the reason that the first sender was told
    look_at: int | None = None  # when what was put off or refused is looked at again
    unpriced: bool = False  # nobody knows what the answer will cost
