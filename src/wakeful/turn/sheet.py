"""A sheet: the lines and events that one commit adds to a turn."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from wakeful.broker.settlement import Settlement
from wakeful.bus.bus import Bus
from wakeful.gate.wakes import MayWake
from wakeful.prompts import notes
from wakeful.store.database import Tx
from wakeful.transcript import entries
from wakeful.transcript.entries import Line
from wakeful.transcript.sessions import Session
from wakeful.turn.ending import Ending
from wakeful.turn.journal import Attempt
from wakeful.turns import turns
from wakeful.turns.turns import Phase, Turn
from wakeful.vocabulary.entry import Body, Entry, EntryKind, NoteBody, UserBody
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.queueing import QueueSettings
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import Draft, Receipt, Stimulus, Trust

QueueSettingsOf = Callable[[Session, Stimulus], QueueSettings]
File = Callable[[Tx, Sequence[Draft]], list[Receipt]]  # for lanes whose locks are held
# What the settings say of a stimulus: the tools that its source is granted beyond those of its
# trust, and the session that hears of the end of its turn.
GrantsOf = Callable[[Stimulus], tuple[str, ...]]
ReportsTo = Callable[[Tx, Stimulus], str | None]


class Pen(Record):
    """What every sheet is written with."""

    bus: Bus
    ids: Ids
    ending: Ending
    settlement: Settlement
    may_wake: MayWake
    queue_settings_of: QueueSettingsOf
    file: File
    grants_of: GrantsOf
    reports_to: ReportsTo


class Sheet:
    """What a commit writes; thrown away with its transaction if that must run again."""

    def __init__(self, pen: Pen, tx: Tx, attempt: Attempt, turn: Turn, session: Session) -> None:
        self.pen = pen
        self.tx = tx
        self.attempt = attempt
        self.turn = turn
        self.session = session
        self.written: list[Entry] = []
        self._lines: list[Line] = []

    @property
    def count(self) -> int:
        """How many lines there are so far, written or not."""
        return len(self.written) + len(self._lines)

    def add(self, body: Body, *, kind: EntryKind = EntryKind.MESSAGE) -> None:
        """Add a line to the transcript."""
        self._lines.append(
            Line(
                id=self.pen.ids.entry(),
                kind=kind,
                body=body,
                turn_id=self.turn.id,
                epoch=self.attempt.epoch,
            )
        )

    def note(self, topic: str, text: str) -> None:
        """Add a line of the runtime's own that the model reads."""
        self.add(NoteBody(topic=topic, text=text), kind=EntryKind.CUSTOM_MESSAGE)

    def add_stimulus(
        self, stimulus: Stimulus, text: str | None = None, *, is_again: bool = False
    ) -> None:
        """Add the line that shows a stimulus to the model; there is one per stimulus, ever.

        What was shown on a path that the session has left is shown again, without being its line.
        """
        said = stimulus.text if text is None else text
        self._lines.append(
            Line(
                id=self.pen.ids.entry(),
                kind=EntryKind.MESSAGE,
                body=UserBody(
                    text=said + notes.attached(stimulus.attachments),
                    source=stimulus.source,
                    is_external=stimulus.trust is Trust.EXTERNAL,
                ),
                turn_id=self.turn.id,
                stimulus_id=None if is_again else stimulus.id,
                epoch=self.attempt.epoch,
            )
        )

    def taint(self) -> None:
        """Let the turn's trust sink: its model is shown text from outside from here on."""
        if self.turn.trust is Trust.OPERATOR:
            self.turn = turns.taint(self.tx, self.turn)

    def flush(self) -> None:
        """Write the lines gathered so far."""
        self.session, written = entries.append(self.tx, self.session, self._lines)
        self.written += written
        self._lines = []

    def enter(self, phase: Phase, *, step: int, tool_calls: int) -> None:
        """Note how far the turn has come."""
        turns.enter(self.tx, self.turn, phase, step=step, tool_calls=tool_calls)
        retries = 0 if step > self.turn.step else self.turn.retries
        self.turn = replace(
            self.turn, phase=phase, step=step, tool_calls=tool_calls, retries=retries
        )

    def publish(self, kind: str, stimulus_id: str | None = None, **data: object) -> None:
        """Publish an event of this turn."""
        self.pen.bus.publish(
            self.tx,
            Event(
                kind=kind,
                session_key=self.turn.session_key,
                turn_id=self.turn.id,
                stimulus_id=stimulus_id,
                data=data,
            ),
        )
