"""The verbs about automations: what a program has done at certain times, and what came of it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from wakeful.access.principal import Principal
from wakeful.automations.importing import ImportedJob
from wakeful.automations.wishes import Edits, Wish
from wakeful.doors import automations, naming
from wakeful.services import Services
from wakeful.views.automations import (
    AutomationFilter,
    AutomationState,
    AutomationStatus,
    RunStatus,
)
from wakeful.vocabulary.automation import AutomationRun
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.stimulus import OPERATOR

_ME = Principal.operator()


class AutomationVerbs(ABC):
    """Automations, by the operator's word; each is named by its id or its name."""

    @property
    @abstractmethod
    def services(self) -> Services:
        """What the verbs are made of, for a door of one's own."""

    async def add_automation(self, wish: Wish, *, dry_run: bool = False) -> AutomationStatus:
        """Have something done at certain times; a dry run only says when it would be."""
        _check(wish, Wish, "wish")
        return await automations.add(self.services, _ME, wish, is_dry=dry_run)

    async def import_automations(
        self, jobs: Sequence[Any], sessions: Mapping[str, str] | None = None
    ) -> list[ImportedJob]:
        """Take over the jobs of nanobot's `jobs.json`: all of them, or none if one is bad.

        `sessions` says which of ours stands for each of theirs.
        """
        return await automations.import_jobs(self.services, _ME, jobs, sessions or {})

    async def edit_automation(
        self, name: str, changes: Edits, *, dry_run: bool = False
    ) -> AutomationStatus:
        """Change an automation; another schedule voids what was due, other changes move nothing."""
        _check(changes, Edits, "changes")
        return await automations.edit(self.services, _ME, _named(name), changes, is_dry=dry_run)

    async def pause_automation(self, name: str) -> AutomationStatus:
        """Let nothing of an automation be due until it is resumed."""
        return await automations.pause(self.services, _ME, _named(name))

    async def resume_automation(self, name: str) -> AutomationStatus:
        """Let an automation be due again, from now on."""
        return await automations.resume(self.services, _ME, _named(name))

    async def run_automation(self, name: str) -> AutomationRun:
        """Run an automation now; its schedule stays as it is."""
        return await automations.run(self.services, _ME, _named(name))

    async def remove_automation(self, name: str) -> AutomationStatus:
        """Remove an automation; what waits of it is cancelled, what runs goes on."""
        return await automations.remove(self.services, _ME, _named(name))

    async def automation(self, name: str) -> AutomationStatus:
        """Return an automation, when it is due next, and since when it runs, if it does."""
        view = self.services.views.automations
        return await view.status(await view.find(_named(name), OPERATOR))

    async def automations(
        self,
        *,
        session: str | None = None,
        agent: str | None = None,
        state: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Sequence[AutomationStatus]:
        """Return automations, the newest first; `after` is the id of one.

        Those of a session, of an agent, or in a state: enabled, paused, finished, failures.
        """
        views = self.services.views
        key = None
        if session is not None:
            named = naming.key_of(views, session, "session")
            key = views.bindings.answering_session(named, OPERATOR)
        wanted = AutomationFilter(
            session_key=key, agent_id=agent, state=None if state is None else _state(state)
        )
        return (await views.automations.page(OPERATOR, wanted, after, limit)).items

    async def automation_runs(
        self, name: str, *, after: str | None = None, limit: int = 50
    ) -> Sequence[RunStatus]:
        """Return runs of an automation, the newest first; `after` is the `place` of one."""
        return await self.services.views.automations.runs(_named(name), OPERATOR, after, limit)

    async def automation_run(self, run_id: str) -> RunStatus:
        """Return one run, with what its model was told and what went wrong."""
        return await self.services.views.automations.run(_named(run_id), OPERATOR)


def _named(name: Any) -> str:  # callers without a type checker pass anything
    if not isinstance(name, str):
        raise InvalidInput("name", f"must be text, not {type(name).__name__}")
    return name


def _check(value: object, kind: type, field: str) -> None:
    if not isinstance(value, kind):
        raise InvalidInput(field, f"must be {kind.__name__}, not {type(value).__name__}")


def _state(word: str) -> AutomationState:
    try:
        return AutomationState(_named(word))
    except ValueError:
        known = ", ".join(AutomationState)
        raise InvalidInput("state", f"must be one of {known}, not {word[:40]!r}") from None
