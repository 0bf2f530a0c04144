"""Heartbeats by somebody's word: turned off and on, asked for, and told what happened."""

from datetime import UTC, datetime

from msgspec.structs import replace

from wakeful.broker import lane_rows
from wakeful.gate import halts
from wakeful.intake.filing import File
from wakeful.prompts.heartbeat import system_line
from wakeful.store.database import Lock, Store, Tx
from wakeful.timers import timers
from wakeful.triggers.beating import Beating, timer_id
from wakeful.triggers.heartbeat_skips import AskedBy
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.agent import Agents
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.stimulus import OPERATOR, Draft, Receipt, Trust


class HeartbeatActs:
    """What people and jobs do about an agent's heartbeat."""

    def __init__(self, store: Store, agents: Agents, beating: Beating, file: File) -> None:
        self._store = store
        self._agents = agents
        self._beating = beating
        self._file = file

    def locks(self, agent_id: str) -> tuple[Lock, ...]:
        """Return what whoever acts as part of another change must hold."""
        rules = self._agents.get(agent_id, "agent").heartbeat
        return lane_rows.lock(rules.session_of(agent_id)), halts.ASKING

    async def switch(self, agent_id: str, *, is_on: bool) -> None:
        """Turn an agent's heartbeat on or off, whatever its interval is."""
        await self._store.transact(
            lambda tx: self.switch_in(tx, agent_id, is_on=is_on), locks=self.locks(agent_id)
        )

    def switch_in(self, tx: Tx, agent_id: str, *, is_on: bool) -> None:
        rules = self._agents.get(agent_id, "agent").heartbeat
        if is_on and not rules.every_ms:
            raise InvalidInput("action", "the settings turn it off: heartbeat.every is 0")
        self._beating.set(tx, agent_id, is_off=not is_on)

    async def ask(self, agent_id: str) -> Receipt:
        """File a heartbeat that the operator wants now."""
        return await self._store.transact(
            lambda tx: self.ask_in(tx, agent_id, AskedBy.OPERATOR, OPERATOR),
            locks=self.locks(agent_id),
        )

    def ask_in(self, tx: Tx, agent_id: str, asked_by: AskedBy, source: str) -> Receipt:
        return self._beating.ask(tx, agent_id, asked_by, source)

    async def file_event(self, agent_id: str, text: str, *, source: str) -> Receipt:
        """Tell an agent what happened; it reads that with its next heartbeat."""
        draft = self.event(agent_id, text, source=source)
        return await self._store.transact(
            lambda tx: self.file_event_in(tx, draft), locks=self.locks(agent_id)
        )

    def event(
        self, agent_id: str, text: str, *, source: str, trust: Trust = Trust.OPERATOR
    ) -> Draft:
        """Return what happened, as it is filed in the session where an agent's heart beats."""
        key = self._agents.get(agent_id, "agent").heartbeat.session_of(agent_id)
        return Draft(
            session_key=key,
            text=text,
            kind=Kind.SYSTEM_EVENT,
            trust=trust,
            owner=OPERATOR,
            source=source,
        )

    def file_event_in(self, tx: Tx, draft: Draft, *, wakes: bool = False) -> Receipt:
        """File what happened: for the next heartbeat, or for one that is asked for now.

        Where no heart beats it opens a turn of its own, and so does what came from outside: no
        heartbeat shows that to a model that may do everything.
        """
        agent_id = keys.agent_of(draft.session_key)
        beat = timers.get(tx, timer_id(agent_id))
        beats_there = beat is not None and beat.target == draft.session_key
        is_taken = beats_there and draft.trust is Trust.OPERATOR
        at = datetime.fromtimestamp(tx.now / 1000, UTC).astimezone(self._beating.zone)
        line = system_line(at.strftime("%Y-%m-%d %H:%M %Z"), draft.text)
        (receipt,) = self._file(tx, [replace(draft, text=line, is_taken_along=is_taken)])
        if wakes and is_taken:
            self._beating.ask(tx, agent_id, AskedBy.EVENT, draft.source)
        return receipt
