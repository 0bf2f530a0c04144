"""A runtime with a say in what the engine does, as features have it."""

from collections.abc import Sequence
from dataclasses import replace

from wakeful.assembly.hooks import Hooks
from wakeful.models.model import Model
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import in_memory
from wakeful.tools.tool import Tool
from wakeful.vocabulary.clock import Clock


def hooked(
    model: Model,
    hooks: Hooks,
    *,
    tools: Sequence[Tool] = (),
    settings: Settings | None = None,
    clock: Clock | None = None,
) -> Runtime:
    runtime = in_memory(model, tools=tools, settings=settings, clock=clock)
    plan = runtime._plan  # pyright: ignore[reportPrivateUsage]
    runtime._plan = replace(plan, hooks=hooks)  # pyright: ignore[reportPrivateUsage]
    return runtime
