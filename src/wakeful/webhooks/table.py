"""The hooks that are configured now, and what came to them since this process began."""

import logging
from collections.abc import Mapping

from wakeful.telemetry.metrics import Metrics
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import NotFound
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import Stimulus
from wakeful.webhooks.hook import Hook

log = logging.getLogger(__name__)

QUIET_S = 60.0  # between two lines of the log about one hook: anybody can send what is refused
NOBODY = ""  # stands for every name that is no hook's


class Refusals(Record):
    """What was refused at one hook; of it nothing is in any ledger."""

    count: int = 0
    last_at: int | None = None
    last_reason: str | None = None


class Webhooks:
    """Every hook by its name."""

    def __init__(self, hooks: Mapping[str, Hook], clock: Clock, metrics: Metrics) -> None:
        self._clock = clock
        self._metrics = metrics
        self._refusals: dict[str, Refusals] = {}
        self._logged: dict[str, float] = {}  # when, by the clock that never jumps
        self.follow(hooks)

    def follow(self, hooks: Mapping[str, Hook]) -> None:
        """Take deliveries of other hooks from now on."""
        self._hooks = hooks
        self._tools = {(Kind.WEBHOOK, hook.name): hook.tools for hook in hooks.values()}

    def find(self, name: str) -> Hook | None:
        return self._hooks.get(name)

    def get(self, name: str) -> Hook:
        """Return a hook, or say that there is none."""
        hook = self._hooks.get(name)
        if hook is None:
            raise NotFound("name", f"no hook {name[:80]!r}")
        return hook

    def all(self) -> list[Hook]:
        return list(self._hooks.values())

    def grants_of(self, stimulus: Stimulus) -> tuple[str, ...]:
        """Return the tools that whoever sent a stimulus is granted, by the settings of now."""
        return self._tools.get((stimulus.kind, stimulus.source), ())

    def note_taken(self, name: str, outcome: str) -> None:
        """Count a delivery that was filed, or that was filed before."""
        self._metrics.webhook(name, outcome)

    def note_refused(self, name: str, reason: str) -> None:
        """Count a delivery of which nothing is written anywhere else."""
        known = name if name in self._hooks else NOBODY
        self._metrics.webhook(known, reason)
        if known == NOBODY:
            return
        count = self.refusals(name).count + 1
        now = self._clock.now()
        self._refusals[name] = Refusals(count=count, last_at=now, last_reason=reason)
        at = self._clock.monotonic()
        if at - self._logged.get(name, at - QUIET_S) >= QUIET_S:
            self._logged[name] = at
            log.warning("a webhook for %s was refused: %s (%d so far)", name, reason, count)

    def refusals(self, name: str) -> Refusals:
        return self._refusals.get(name, Refusals())
