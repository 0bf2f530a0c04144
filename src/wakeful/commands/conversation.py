"""Commands about the conversation: stop it, steer it, compact it, change how it queues."""

from msgspec.structs import replace

from wakeful.commands import queue_words
from wakeful.commands.command import Caller, Deed, Said, saying
from wakeful.commands.looking import session_of
from wakeful.gate import halts
from wakeful.services import Services
from wakeful.store.database import Tx
from wakeful.transcript import sessions
from wakeful.vocabulary import queueing
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.queueing import NO_OVERRIDES, Mode, QueueOverrides
from wakeful.vocabulary.stimulus import Draft


async def stop(services: Services, caller: Caller, _rest: str) -> Deed:
    def act(tx: Tx) -> Said:
        stopped = services.intake.stop_in(tx, caller.session_key)
        parts = [f"Stopped the turn {stopped.turn_id}."] if stopped.turn_id else []
        if count := stopped.waiting:
            parts.append(f"Cancelled {count} waiting {'message' if count == 1 else 'messages'}.")
        return Said(text=" ".join(parts) or "Nothing was running.")

    return Deed(act=act, afterwards=lambda: services.intake.finish_stop(caller.session_key))


async def begin_anew(services: Services, caller: Caller, rest: str) -> Deed:
    """Begin a new transcript; the rest of the line is its first message."""
    if rest:
        draft = replace(caller.draft, text=rest, begins="command")
        return _filing(services, draft, "A new conversation begins.")

    def act(tx: Tx) -> Said:
        done = services.acts.reset_in(tx, caller.session_key, by="command")
        when = " when the running turn has ended" if done.is_waiting else ""
        return Said(text=f"A new conversation begins{when}.")

    return Deed(act=act)


async def steer(services: Services, caller: Caller, rest: str) -> Deed:
    if not rest:
        raise InvalidInput("text", "say what the agent should take into account: /steer TEXT")
    draft = replace(caller.draft, text=rest, queue=QueueOverrides(mode=Mode.STEER))
    return _filing(services, draft)


async def compact(services: Services, caller: Caller, rest: str) -> Deed:
    key, route, principal = caller.session_key, caller.draft.route, caller.principal

    def act(tx: Tx) -> Said:
        if sessions.get(tx, key) is None:
            return Said(text="There is nothing to compact yet: nothing was said here.")
        receipt = services.compactions.ask_in(tx, key, rest, route, principal)
        return Said(text="The conversation will be compacted.", receipt=receipt)

    return Deed(act=act, locks=(halts.ASKING,))


async def queue(services: Services, caller: Caller, rest: str) -> Deed:
    key = caller.session_key
    session = await session_of(services, caller)
    chosen = NO_OVERRIDES if session is None else session.queue
    if not rest:
        return saying(_described(chosen))
    wanted = queueing.checked(
        NO_OVERRIDES if rest == "default" else queue_words.parsed(rest, chosen)
    )

    def act(tx: Tx) -> Said:
        services.intake.open_in(tx, caller.draft)
        services.intake.set_queue_in(tx, key, wanted)
        return Said(text=_described(wanted))

    return Deed(act=act)


def _filing(services: Services, draft: Draft, text: str | None = None) -> Deed:
    """Return the deed that files a text for the agent; its key is the command's already."""
    checked = services.intake.checked(replace(draft, dedup_key=None))

    def act(tx: Tx) -> Said:
        (receipt,) = services.intake.accept_in(tx, [checked])
        filed = f"Filed as {receipt.stimulus_id}: {receipt.outcome.value}."
        return Said(text=text or filed, receipt=receipt)

    return Deed(act=act, locks=(halts.ASKING,))


def _described(queue: QueueOverrides) -> str:
    chosen = [
        f"{name} {value}"
        for name in QueueOverrides.__struct_fields__
        if (value := getattr(queue, name)) is not None
    ]
    if chosen:
        return f"This session: {', '.join(chosen)}."
    return f"This session queues as its agent does. Modes: {', '.join(Mode)}."
