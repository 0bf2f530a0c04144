"""What accepting knows of each lane it touches, sessions that are new made first."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from wakeful.access import rules as access
from wakeful.broker import lane_rows, stimuli
from wakeful.broker.lane_rows import Lane
from wakeful.bus.bus import Bus
from wakeful.gate import halts
from wakeful.intake.decide import Decision
from wakeful.sleeps import sleeps
from wakeful.sleeps.sleeps import Sleep
from wakeful.store.database import Tx
from wakeful.transcript import sessions
from wakeful.transcript.sessions import Session, SessionPolicy
from wakeful.turns import turns
from wakeful.turns.turns import Turn
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.errors import NotFound
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.session_key import KeyKind, SessionKey
from wakeful.vocabulary.stimulus import Draft, Stimulus


@dataclass
class LaneWork:
    """What is known of one lane while a group of drafts is accepted."""

    lane: Lane
    session: SessionPolicy
    turn: Turn | None
    sleep: Sleep | None
    is_halted: bool
    waiting: int = 0
    capped: int = 0
    has_spoken: bool = False  # somebody spoke: answers go there from now on
    is_reset: bool = False  # a new transcript begins with one of the drafts
    added: list[Stimulus] = field(default_factory=list[Stimulus])
    suppressed: list[tuple[str, Decision]] = field(default_factory=list[tuple[str, Decision]])


class LaneWorks:
    """Reads what the decisions about drafts depend on."""

    def __init__(self, bus: Bus, ids: Ids) -> None:
        self._bus = bus
        self._ids = ids

    def look(self, tx: Tx, drafts: Sequence[Draft]) -> dict[str, LaneWork]:
        """Read everything the decisions depend on, making lanes and sessions that are new.

        A session that is not there, and that nothing here may make, has no work.
        """
        rows = sessions.policies(tx, sorted({draft.session_key for draft in drafts}))
        makers = {
            draft.session_key: draft
            for draft in reversed(drafts)
            if draft.session_key not in rows and may_make_session(draft)
        }
        session_keys = sorted({*rows, *makers})
        found = self._lanes(tx, session_keys)
        if makers:
            self._make_sessions(tx, makers)
            rows |= sessions.policies(tx, sorted(makers))
        turn_ids = [lane.turn_id for lane in found.values() if lane.turn_id is not None]
        open_turns = turns.get_all(tx, turn_ids) if turn_ids else {}
        asleep = sleeps.get_all(tx, session_keys)
        halted = halts.scopes(tx)
        works = {
            key: LaneWork(
                lane,
                rows[key],
                open_turns.get(lane.turn_id or ""),
                asleep.get(key),
                is_halted=halts.covers(halted, lane.agent_id),
            )
            for key, lane in found.items()
        }
        for key, (total, capped) in stimuli.count_waiting(tx, session_keys).items():
            works[key].waiting, works[key].capped = total, capped
        return works

    def _lanes(self, tx: Tx, session_keys: Sequence[str]) -> dict[str, Lane]:
        found = lane_rows.get_all(tx, session_keys)
        # A lane that another node made after this group took its locks is not ours yet either.
        new = [key for key in session_keys if key not in found or not tx.holds(lane_rows.lock(key))]
        if new:
            lane_rows.add_missing(tx, new)
            found |= lane_rows.get_all(tx, new)
        return found

    def open(self, tx: Tx, draft: Draft) -> None:
        """Make the session of a draft if it is not there, and leave the draft itself alone."""
        key = draft.session_key
        self._lanes(tx, [key])
        found = sessions.policies(tx, [key])
        if not found:
            self._make_sessions(tx, {key: draft})
        elif not access.may_write(draft.owner, found[key].owner):
            raise NotFound("session_key", f"no session {key!r}")

    def make(self, tx: Tx, draft: Draft) -> None:
        """Make the session of a draft if it is not there; it has a lane once it is needed."""
        if not sessions.policies(tx, [draft.session_key]):
            self._make_sessions(tx, {draft.session_key: draft})

    def _make_sessions(self, tx: Tx, makers: dict[str, Draft]) -> None:
        self._refuse_strangers(tx, list(makers.values()))
        sessions.add_missing(tx, [self._new_session(tx, makers[key]) for key in sorted(makers)])
        for key in sorted(makers):
            self._bus.publish(tx, "session.created", key)

    def _refuse_strangers(self, tx: Tx, drafts: Sequence[Draft]) -> None:
        """Keep the name of a deleted session for its owner: ledgers and events remember it."""
        owned = [draft for draft in drafts if not access.sees_all(draft.owner)]
        past = sessions.past_owners(tx, [draft.session_key for draft in owned]) if owned else {}
        for draft in owned:
            holder = past.get(draft.session_key)
            if holder is not None and not access.may_write(draft.owner, holder):
                raise NotFound("session_key", f"no session {draft.session_key!r}")

    def _new_session(self, tx: Tx, draft: Draft) -> Session:
        transcript_id = self._ids.new("tr")
        return Session(
            key=draft.session_key,
            agent_id=keys.agent_of(draft.session_key),
            transcript_id=transcript_id,
            branch=transcript_id,
            created_at=tx.now,
            started_at=tx.now,
            binding=draft.binding,
            owner=draft.makes_for or draft.owner,
            parent=(parent := keys.parent(SessionKey(draft.session_key))),
            parent_kind=None if parent is None else "thread",
        )


def may_make_session(draft: Draft) -> bool:
    """Tell whether a session that is not there is made for a draft.

    What the runtime files by itself revives nothing that somebody deleted, but for the sessions
    that are its own.
    """
    rule = draft.kind.rule
    if not rule.is_inner:
        return True
    kind = keys.parse(SessionKey(draft.session_key)).kind
    return kind in (KeyKind.MAIN, KeyKind.ACTIVITY) or kind.value == rule.makes
