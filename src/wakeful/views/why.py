"""Why a turn happened: its causes, back to the first one."""

from collections.abc import Sequence

import msgspec

from wakeful.access import rules
from wakeful.broker.stimuli import STIMULI
from wakeful.store.database import Store
from wakeful.turns.asks import Purpose
from wakeful.turns.tool_calls import CALLS, Call
from wakeful.turns.turns import TURNS, Turn
from wakeful.views.sessions import SessionView
from wakeful.vocabulary.errors import NotFound
from wakeful.vocabulary.message import Usage
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import OPERATOR, Stimulus

LONGEST_CHAIN = 100  # links shown

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


class ChainLink(Record):
    """One turn of a causal chain, with what woke it and what it did."""

    turn: Turn
    stimuli: Sequence[Stimulus]
    epochs: Sequence[int]  # of its lane, one for each claim that wrote something
    asks: Sequence[AskRow]
    tools: Sequence[Call]


class WhyView:
    """Walks from a turn to the stimulus that began it all."""

    def __init__(self, store: Store, sessions: SessionView) -> None:
        self._store = store
        self._sessions = sessions

    async def chain(self, turn_id: str, viewer: str = OPERATOR) -> Sequence[ChainLink]:
        """Return the turn's link, then its cause's, and so on, as far as the viewer may see."""
        links: list[ChainLink] = []
        next_id: str | None = turn_id
        while next_id is not None and len(links) < LONGEST_CHAIN:
            link = await self._link(next_id, viewer)
            if link is None:
                break
            links.append(link)
            next_id = next((one.cause_id for one in link.stimuli if one.cause_id), None)
        if not links:
            raise NotFound("turn_id", f"no turn {turn_id!r}")
        return links

    async def _link(self, turn_id: str, viewer: str) -> ChainLink | None:
        rows = await self._store.read(TURNS.select("WHERE id = :id"), id=turn_id)
        if not rows:
            return None
        turn = TURNS.read(rows[0])
        if not rules.sees(viewer, await self._sessions.owner_of(turn.session_key)):
            return None
        stimuli = await self._store.read(
            STIMULI.select("WHERE turn_id = :id OR id = :opened_by ORDER BY id"),
            id=turn_id,
            opened_by=turn.opened_by,
        )
        asks = await self._asks(turn_id)
        calls = await self._store.read(
            CALLS.select("WHERE turn_id = :id ORDER BY step, position"), id=turn_id
        )
        tools = CALLS.read_known(calls)
        return ChainLink(
            turn=turn,
            stimuli=STIMULI.read_known(stimuli),
            epochs=sorted({ask.epoch for ask in asks} | {call.epoch for call in tools}),
            asks=asks,
            tools=tools,
        )

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
