"""A tool: a typed function with a name, a description, a schema and an effect class."""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, cast, get_type_hints, overload

import msgspec

from wakeful.automations.acts import AutomationActs
from wakeful.models.model import ToolSpec
from wakeful.store.database import Store, Tx
from wakeful.transcript.sessions import Session
from wakeful.turns.turns import Turn
from wakeful.vocabulary.agent import AgentConfig
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.proactive import ProactiveRules, SleepIntent
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import (
    Attachment,
    Draft,
    ReadyAttachment,
    Receipt,
    State,
    Trust,
)

DEFAULT_TIMEOUT_S = 60.0
NO_ALIASES: Mapping[str, str | None] = {}

NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]{0,63}")
_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")


class Effect(StrEnum):
    READ = "read"  # changes nothing: rerun after a crash, run beside other reads
    IDEMPOTENT = "idempotent"  # rerun after a crash with the same key
    EFFECT = "effect"  # never rerun: a crash leaves its outcome unknown
    LEDGER = "ledger"  # runs inside the commit of its own result: exactly once


class ToolContext(Record):
    """What a tool may know about its call; given to a parameter of this type."""

    key: str  # the same over every attempt at this call
    session_key: str
    agent_id: str
    turn_id: str
    workspace: Path | None
    clock: Clock
    shared_files: tuple[str, ...] = ()  # of the workspace: all that a turn from outside reaches
    trust: Trust = Trust.EXTERNAL  # how far whoever caused the turn is trusted
    store: Store | None = None  # to look at, never to write to; None where a tool is tried alone
    timezone: str = "UTC"  # the user's; empty: the machine's


class LedgerContext(Record):
    """What a ledger tool works with: the open transaction of its own result."""

    tx: Tx
    ids: Ids
    turn: Turn
    session: Session
    agent: AgentConfig
    key: str
    publish: Callable[..., None]  # publish(kind, **data): an event of this turn
    # File stimuli, for the lanes that the tool's `locks` named.
    file: Callable[[Sequence[Draft]], list[Receipt]]
    proactive: ProactiveRules  # how the session wakes by itself
    settle: Callable[[Sequence[str], State], None]  # end stimuli of the lanes that are locked
    attachments: tuple[ReadyAttachment, ...] = ()  # what the tool's `prepare` has read for it
    automations: AutomationActs | None = None  # None where a tool is tried alone


class ToolResult(Record):
    """What a tool returns when plain text does not say enough."""

    text: str
    is_error: bool = False
    is_in_doubt: bool = False  # it may or may not have acted
    ends_turn: bool = False  # the turn rests after the other calls of this reply
    is_external: bool = False  # text from outside: shown as data, and the turn is trusted less
    ends_grants: bool = False  # text of other sources than the one that was granted more tools
    sleep: SleepIntent | None = None  # its session sleeps once the turn has ended well
    attachments: tuple[Attachment | ReadyAttachment, ...] = ()  # shown to a model that can see


class CallFacts(Record):
    """Whose call it is, as far as it is known before anything is read."""

    key: str  # the same over every attempt at this call
    session_key: str
    agent_id: str
    turn_id: str


# The sessions, beside the turn's own, whose lanes a ledger tool touches with these arguments.
Locks = Callable[[Mapping[str, Any], CallFacts], Iterable[str]]


class Tool:
    """A function that a model may call.

    A ledger tool runs inside a transaction, where no file may be read: `prepare`, a tool that takes
    its arguments unread, reads before it what they name in `files`; its attachments go along.

    With a `schema` of its own it takes `context` and, unread, `arguments`: for a tool whose
    signature is known only while running.

    `aliases` are names that others have for its arguments; what has none of ours is left out.
    """

    # Each is a word of the decorator; a caller names the few it needs.
    def __init__(  # noqa: PLR0913
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        effect: Effect = Effect.EFFECT,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        is_for_external: bool = False,
        description: str | None = None,
        schema: Mapping[str, Any] | None = None,
        locks: Locks | None = None,
        prepare: "Tool | None" = None,
        aliases: Mapping[str, str | None] = NO_ALIASES,
    ) -> None:
        self.function = function
        self._aliases = aliases
        self.locks = locks
        self.prepare = prepare
        self.name = name or function.__name__
        if not NAME.fullmatch(self.name):
            raise InvalidInput("name", f"a tool's name must match {NAME.pattern}: {self.name!r}")
        if timeout_s <= 0:
            raise InvalidInput("timeout_s", f"must be positive, not {timeout_s}")
        self.effect = effect
        self.timeout_s = timeout_s
        self.is_for_external = is_for_external
        self.description = description or inspect.getdoc(function) or ""
        self.is_async = inspect.iscoroutinefunction(function)
        if self.effect is Effect.LEDGER and self.is_async:
            raise InvalidInput("effect", f"the ledger tool {self.name!r} must be a plain function")
        self.context_parameter: str | None = "context"
        self._arguments: type[Any] | None = None
        if schema is None:
            self.context_parameter, self._arguments = _arguments_of(function, self.name)
            self._check_context()
            schema = _schema(self._arguments)
        self.spec = ToolSpec(name=self.name, description=self.description, parameters=dict(schema))

    def _check_context(self) -> None:
        if self.context_parameter is None:
            return
        wants = get_type_hints(self.function)[self.context_parameter]
        if (wants is LedgerContext) is not (self.effect is Effect.LEDGER):
            raise InvalidInput(
                self.context_parameter,
                f"the {self.effect} tool {self.name!r} is given another context than "
                f"{wants.__name__}",
            )

    def parse(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments as the function's types, or raise InvalidInput naming the one."""
        if self._arguments is None:
            return {"arguments": dict(arguments)}
        known = self._arguments.__struct_fields__
        spelled = {name if name in known else _snake(name): v for name, v in arguments.items()}
        for name, ours in self._aliases.items():
            value = spelled.pop(name, None)
            if ours is not None and value is not None:
                spelled.setdefault(ours, value)
        try:
            parsed = msgspec.convert(spelled, self._arguments, strict=False)
        except msgspec.ValidationError as error:
            rule, _, place = str(error).partition(" - at `$.")
            raise InvalidInput(place.rstrip("`") or "arguments", rule) from None
        return {name: getattr(parsed, name) for name in known}


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    effect: Effect | str = Effect.EFFECT,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    is_for_external: bool = False,
    locks: Locks | None = None,
    prepare: Tool | None = None,
    aliases: Mapping[str, str | None] = NO_ALIASES,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(  # noqa: PLR0913 (the words of the decorator)
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    effect: Effect | str = Effect.EFFECT,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    is_for_external: bool = False,
    locks: Locks | None = None,
    prepare: Tool | None = None,
    aliases: Mapping[str, str | None] = NO_ALIASES,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a typed function a tool; its docstring is what the model reads about it."""

    def decorate(decorated: Callable[..., Any]) -> Tool:
        return Tool(
            decorated,
            name=name,
            effect=_effect_named(effect),
            timeout_s=timeout_s,
            is_for_external=is_for_external,
            locks=locks,
            prepare=prepare,
            aliases=aliases,
        )

    return decorate if function is None else decorate(function)


def _effect_named(name: str) -> Effect:
    try:
        return Effect(name)
    except ValueError:
        rule = f"must be one of {', '.join(Effect)}, not {name!r}"
        raise InvalidInput("effect", rule) from None


def _arguments_of(function: Callable[..., Any], name: str) -> tuple[str | None, type[Any]]:
    """Return the parameter that takes the context, and a struct of all the others."""
    hints = get_type_hints(function, include_extras=True)
    context_parameter: str | None = None
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for parameter in inspect.signature(function).parameters.values():
        hint = hints.get(parameter.name)
        if hint is ToolContext or hint is LedgerContext:
            context_parameter = parameter.name
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise InvalidInput(parameter.name, f"the tool {name!r} may not take *args or **kwargs")
        if hint is None:
            raise InvalidInput(parameter.name, f"the tool {name!r} must annotate every parameter")
        if parameter.default is parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fields.append((parameter.name, hint, parameter.default))
    struct = msgspec.defstruct(
        f"{name}_arguments", fields, kw_only=True, forbid_unknown_fields=True
    )
    return context_parameter, struct


def _schema(arguments: type[Any]) -> dict[str, Any]:
    (reference,), definitions = msgspec.json.schema_components(
        [arguments], ref_template="#/$defs/{name}"
    )
    schema = definitions.pop(reference["$ref"].removeprefix("#/$defs/"))
    schema.pop("title", None)
    if definitions:
        schema["$defs"] = definitions
    return cast("dict[str, Any]", schema)


def _snake(name: str) -> str:
    """Read camelCase argument names, which some models prefer, as ours."""
    return _HUMP.sub(r"_\1", name).lower()
