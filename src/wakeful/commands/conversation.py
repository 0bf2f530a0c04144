"""Commands about the conversation: stop it, steer it, fold it, change how it queues."""

import re
from enum import StrEnum
from typing import TypeVar

from msgspec.structs import replace

from wakeful.commands.command import Caller, Reach, Said
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.queueing import NO_OVERRIDES, Drop, Mode, QueueOverrides
from wakeful.vocabulary.stimulus import Receipt

Word = TypeVar("Word", bound=StrEnum)

_DURATION = re.compile(r"(\d{1,9})(ms|s|m)?")
_MS = {"ms": 1, "s": 1_000, "m": 60_000, None: 1}


async def stop(reach: Reach, caller: Caller, _rest: str) -> Said:
    stopped = await reach.intake.stop(caller.session_key)
    parts = [f"Stopped the turn {stopped.turn_id}."] if stopped.turn_id else []
    if stopped.cancelled:
        noun = "message" if len(stopped.cancelled) == 1 else "messages"
        parts.append(f"Cancelled {len(stopped.cancelled)} waiting {noun}.")
    return Said(text=" ".join(parts) or "Nothing was running.")


async def begin_anew(reach: Reach, caller: Caller, rest: str) -> Said:
    """Begin a new transcript; the rest of the line is its first message."""
    if rest:
        receipt = await reach.intake.accept(replace(caller.draft, text=rest, begins="command"))
        return Said(text="A new conversation begins.", receipt=receipt)
    done = await reach.acts.reset(caller.session_key, by="command")
    when = " when the running turn has ended" if done.is_waiting else ""
    return Said(text=f"A new conversation begins{when}.")


async def steer(reach: Reach, caller: Caller, rest: str) -> Said:
    if not rest:
        raise InvalidInput("text", "say what the agent should take into account: /steer TEXT")
    draft = replace(caller.draft, text=rest, mode=Mode.STEER)
    receipt = await reach.intake.accept(draft)
    return Said(text=_filed(receipt), receipt=receipt)


async def compact(reach: Reach, caller: Caller, rest: str) -> Said:
    draft = caller.draft
    receipt = await reach.compactions.ask(caller.session_key, rest, draft.route, draft.trust)
    return Said(text="The conversation will be folded.", receipt=receipt)


async def queue(reach: Reach, caller: Caller, rest: str) -> Said:
    session = await reach.sessions.get(caller.session_key, caller.principal.owner)
    if not rest:
        return Said(text=_described(session.queue))
    wanted = NO_OVERRIDES if rest == "default" else _parsed(rest, session.queue)
    await reach.intake.set_queue(caller.session_key, wanted)
    return Said(text=_described(wanted))


def _filed(receipt: Receipt) -> str:
    return f"Filed as {receipt.stimulus_id}: {receipt.outcome.value}."


def _parsed(rest: str, queue: QueueOverrides) -> QueueOverrides:
    """Read `collect debounce:2s cap:5 drop:old` over the settings so far."""
    for word in rest.lower().split():
        name, colon, value = word.partition(":")
        if not colon:
            queue = replace(queue, mode=_one_of(Mode, name, "mode"))
        elif name == "drop":
            queue = replace(queue, drop=_one_of(Drop, value, "drop"))
        elif name == "debounce":
            queue = replace(queue, debounce_ms=_milliseconds(value))
        elif name == "cap" and value.isascii() and value.isdecimal() and len(value) < 6:
            queue = replace(queue, cap=int(value))
        else:
            raise InvalidInput(
                "queue", f"takes a mode, debounce:2s, cap:20 and drop:old, not {word[:40]!r}"
            )
    return queue


def _one_of(kind: type[Word], word: str, field: str) -> Word:
    try:
        return kind(word)
    except ValueError:
        known = ", ".join(kind)
        raise InvalidInput(field, f"must be one of {known}, not {word[:40]!r}") from None


def _milliseconds(text: str) -> int:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise InvalidInput("debounce", f"must be a time such as 500ms, 2s or 1m, not {text[:40]!r}")
    return int(found[1]) * _MS[found[2]]


def _described(queue: QueueOverrides) -> str:
    chosen = [
        f"{name} {value}"
        for name in QueueOverrides.__struct_fields__
        if (value := getattr(queue, name)) is not None
    ]
    if chosen:
        return f"This session: {', '.join(chosen)}."
    return f"This session queues as its agent does. Modes: {', '.join(Mode)}."
