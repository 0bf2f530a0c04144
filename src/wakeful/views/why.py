"""Why a turn happened: its causes, back to the first one."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from wakeful.access import rules
from wakeful.approvals.approvals import Approval
from wakeful.broker.stimuli import STIMULI
from wakeful.store.database import Store
from wakeful.store.rows import RowTable
from wakeful.turns.asks import Purpose
from wakeful.turns.tool_calls import CallState
from wakeful.turns.turns import TURNS, Turn
from wakeful.views.approvals import ApprovalView
from wakeful.views.ledger import size_of
from wakeful.views.pages import PAGE_BYTES, fitting
from wakeful.views.sessions import SessionView
from wakeful.vocabulary.errors import NotFound
from wakeful.vocabulary.message import Usage
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import OPERATOR, Stimulus

LONGEST_CHAIN = 100  # links shown
ROW_BYTES = 200  # room that a question or a call takes, beside its texts

_WOKE = "WHERE turn_id = :id OR id = :opened_by ORDER BY id"
_SIZES = f"SELECT OCTET_LENGTH(text), cause_id FROM stimuli {_WOKE}"  # noqa: S608 (ours)
_usage = msgspec.json.Decoder(Usage)


class AskRow(Record):
    """One question to a model, as the ledger keeps it."""

    step: int
    attempt: int
    epoch: int
    purpose: Purpose
    state: str
    asked_at: int
    settled_at: int | None
    usage: Usage | None
    error: str | None


class CallRow(Record):
    """One call of a tool, without what went into it and came out."""

    step: int
    call_id: str
    name: str
    effect: str
    epoch: int
    state: CallState
    intended_at: int
    settled_at: int | None


CALLS = RowTable("tool_calls", CallRow)


class ChainLink(Record):
    """One turn of a causal chain, with what woke it and what it did."""

    turn: Turn
    stimuli: Sequence[Stimulus]
    epochs: Sequence[int]  # of its lane, one for each claim that wrote something
    asks: Sequence[AskRow]
    tools: Sequence[CallRow]
    more_stimuli: int = 0  # that woke it, too, for which there was no room
    approvals: Sequence[Approval] = ()  # what it asked, and what it was opened by the answer to
    goes_on_at: str | None = None  # the turn that caused it, if there was no room for that


class WhyView:
    """Walks from a turn to the stimulus that began it all."""

    def __init__(self, store: Store, sessions: SessionView, approvals: ApprovalView) -> None:
        self._store = store
        self._sessions = sessions
        self._approvals = approvals

    async def chain(self, turn_id: str, viewer: str = OPERATOR) -> Sequence[ChainLink]:
        """Return the turn's link, then its cause's, and so on, as far as the viewer may see.

        What does not fit on a page is left out; the last link says at which turn to go on.
        """
        room = PAGE_BYTES
        links: list[ChainLink] = []
        next_id: str | None = turn_id
        while next_id is not None and (turn := await self._seen(next_id, viewer)) is not None:
            if room <= 0 or len(links) == LONGEST_CHAIN:
                links[-1] = replace(links[-1], goes_on_at=turn.id)
                break
            link, next_id = await self._link(turn, room)
            links.append(link)
            room -= _room_of(link)
        if not links:
            raise NotFound("turn_id", f"no turn {turn_id!r}")
        return links

    async def _seen(self, turn_id: str, viewer: str) -> Turn | None:
        rows = await self._store.read(TURNS.select("WHERE id = :id"), id=turn_id)
        if not rows:
            return None
        turn = TURNS.read(rows[0])
        is_seen = rules.sees(viewer, await self._sessions.owner_of(turn.session_key))
        return turn if is_seen else None

    async def _link(self, turn: Turn, room: int) -> tuple[ChainLink, str | None]:
        """Return a turn's link, and the turn that caused it."""
        sizes = await self._store.read(_SIZES, id=turn.id, opened_by=turn.opened_by)
        count = fitting((size for size, _ in sizes), room)
        stimuli = await self._store.read(
            STIMULI.select(f"{_WOKE} LIMIT :count"),
            id=turn.id,
            opened_by=turn.opened_by,
            count=count,
        )
        asks = await self._asks(turn.id)
        calls = await self._store.read(
            CALLS.select("WHERE turn_id = :id ORDER BY step, position"), id=turn.id
        )
        tools = CALLS.read_known(calls)
        link = ChainLink(
            turn=turn,
            stimuli=STIMULI.read_known(stimuli),
            epochs=sorted({ask.epoch for ask in asks} | {call.epoch for call in tools}),
            asks=asks,
            tools=tools,
            more_stimuli=len(sizes) - count,
            approvals=await self._approvals.of_turn(turn.id, turn.opened_by),
        )
        return link, next((cause for _, cause in sizes if cause), None)

    async def _asks(self, turn_id: str) -> list[AskRow]:
        rows = await self._store.read(
            "SELECT step, attempt, epoch, state, asked_at, settled_at, usage, error, purpose "
            "FROM asks WHERE turn_id = :id ORDER BY step, attempt",
            id=turn_id,
        )
        return [
            AskRow(
                step=row[0],
                attempt=row[1],
                epoch=row[2],
                purpose=Purpose(row[8]),
                state=row[3],
                asked_at=row[4],
                settled_at=row[5],
                usage=None if row[6] is None else _usage.decode(row[6]),
                error=row[7],
            )
            for row in rows
        ]


def _room_of(link: ChainLink) -> int:
    """Return how much room a link takes on a page."""
    texts = [link.turn.reply, link.turn.error, *(ask.error for ask in link.asks)]
    rows = ROW_BYTES * (1 + len(link.asks) + len(link.tools) + len(link.approvals))
    return (
        rows + sum(len((text or "").encode()) for text in texts) + sum(map(size_of, link.stimuli))
    )
