"""How full a conversation is, and what is filed for later because of it."""

from wakeful.models.model import Request, context_window
from wakeful.models.windows import tokens_of_request
from wakeful.transcript.sessions import Session
from wakeful.turn.agent import ReadyAgent
from wakeful.turn.attempt import TurnAttempt
from wakeful.turn.compaction import Room, room_of
from wakeful.turns.turns import Turn
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.compacting import NO_WISH
from wakeful.vocabulary.kinds import Answer, Kind, View, Work
from wakeful.vocabulary.stimulus import Draft, Priority

MAX_FAILURES = 3  # compactions of one cycle that failed; then only somebody's wish or need tries
AGAIN_S = 3_600  # how long one asked for by the runtime itself counts as asked for

_SCOPE = "runtime"


def room(agent: ReadyAgent, refused: int | None = None) -> Room:
    """Share out the window of an agent's model; a question of `refused` tokens did not fit it."""
    window = context_window(agent.model)
    if refused is not None:
        window = min(window, refused * 2 // 3)
    return room_of(agent.config.compaction, window)


def summary_tokens(room: Room) -> int:
    """Return how long a summary may be."""
    return room.reserve * 4 // 5


def fixed_part(attempt: TurnAttempt) -> str:
    """Say that instructions and tools leave no room for a conversation, if that is so."""
    agent, turn = attempt.agent, attempt.turn
    tools = agent.toolbox.specs(turn.trust, turn.granted)
    _, system = attempt.system or (turn.trust, "")
    fixed = tokens_of_request(Request(system=system, messages=(), tools=tools))
    window = context_window(agent.model)
    if fixed * 2 < window:
        return ""
    return (
        f" The instructions and tools of this agent alone take about {fixed} of the {window} "
        f"tokens that {agent.model.name} reads at once: give it fewer, or another model."
    )


def is_crowded(agent: ReadyAgent, session: Session, tokens: int) -> bool:
    """Tell whether a conversation must be compacted before the model is asked again."""
    return (
        agent.config.compaction.enabled
        and session.failed_compactions < MAX_FAILURES
        and tokens > room(agent).is_used_up_at
    )


def is_compaction(what: Turn | Draft) -> bool:
    return what.kind.rule.work is Work.COMPACT


def is_flush(what: Turn | Draft) -> bool:
    return what.kind.rule.work is Work.REMEMBER


def is_light_heartbeat(turn: Turn) -> bool:
    """Tell whether a turn sees its tasks, what happened, and nothing else."""
    return turn.view is View.LIGHT and turn.kind.rule.acknowledges


def is_unheard(turn: Turn) -> bool:
    """Tell whether a turn is work that the runtime gave itself: its words reach nobody."""
    answer = turn.kind.rule.answer
    return answer is Answer.NOBODY or (answer is Answer.ASKER and turn.route is None)


def is_moot(turn: Turn, agent: ReadyAgent, session: Session, tokens: int) -> bool:
    """Tell whether what the runtime gave itself to do is done, or no longer of use: another turn
    has made room meanwhile, or another conversation began.
    """
    if is_flush(turn):
        return session.flushed_cycle != cycle_of(session)
    return is_unheard(turn) and not is_crowded(agent, session, tokens)


def due_after(
    turn: Turn, agent: ReadyAgent, session: Session, tokens: int, *, can_remember: bool
) -> list[Draft]:
    """Return what a finished turn leaves to be done about the size of its conversation."""
    due: list[Draft] = []
    if tokens <= room(agent).is_scarce_at or is_compaction(turn):
        return due
    if can_remember and _needs_flush(turn, agent, session):
        due.append(
            _draft(turn, session, Kind.MEMORY_FLUSH, agent.config.compaction.memory_flush.prompt)
        )
    if session.failed_compactions == 0 and is_crowded(agent, session, tokens):
        due.append(_draft(turn, session, Kind.COMPACTION, NO_WISH))
    return due


def must_remember_first(turn: Turn, agent: ReadyAgent, session: Session, tokens: int) -> bool:
    """Tell whether memories are to be written in this turn, before it compacts the conversation.

    There must be room for the question: who is far above the limit can only be compacted. And
    there must be something to compact: half of what stays word for word has nothing, whoever
    counts the tokens.
    """
    share = room(agent)
    has_room = share.keep // 2 < tokens <= share.window - share.reserve // 4
    return has_room and _needs_flush(turn, agent, session) and agent.is_writable


def must_remember_afterwards(turn: Turn, agent: ReadyAgent, session: Session) -> bool:
    """Tell whether memories are to be written of a summary, since what it stands for left no room
    to be asked about; `session` is as it was before.
    """
    return _needs_flush(turn, agent, session) and agent.is_writable


def _needs_flush(turn: Turn, agent: ReadyAgent, session: Session) -> bool:
    """Memories are written once per cycle, by agents that can, in conversations that last."""
    return (
        agent.config.compaction.enabled
        and agent.config.compaction.memory_flush.enabled
        and session.flushed_cycle != cycle_of(session)
        and turn.kind.rule.is_remembered
        and keys.pool_of(session.key) == "main"
        and agent.toolbox.get("memory_write", turn.trust, turn.granted) is not None
    )


def cycle_of(session: Session) -> str:
    """Return the id of the time since the last compaction."""
    return session.cycle or session.transcript_id


def _draft(turn: Turn, session: Session, kind: Kind, text: str) -> Draft:
    return Draft(
        session_key=session.key,
        text=text,
        kind=kind,
        priority=Priority.LATER,
        owner=session.owner,
        trust=turn.trust,  # what came from outside gets no better tools by way of the runtime
        source=kind.detail,
        scope=_SCOPE,
        dedup_key=f"{session.branch} {cycle_of(session)}",  # a fork shares its cycle, not its path
        dedup_window_s=AGAIN_S,
        cause_id=turn.id,
        root_id=turn.root_id,
        depth=turn.depth,
    )
