"""Automations at every door: who may make, see and change which, and what comes of it.

A door names the principal and reads the words. The operator's automations are a person's, and may
run wherever the operator says; a token has those that run in its own sessions, and no others exist
for it.
"""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from wakeful.access import rules
from wakeful.access.principal import Principal
from wakeful.automations import wishes
from wakeful.automations.acts import NameTaken
from wakeful.automations.importing import ImportedJob
from wakeful.automations.wishes import Edits, Wish, maker_of
from wakeful.doors.messaging import Forbidden
from wakeful.services import Services, Views
from wakeful.views.automations import AutomationStatus, no_automation
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.automation import AgentTurn, Automation, AutomationRun, Payload
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import fitting
from wakeful.vocabulary.session_key import SessionKey

T = TypeVar("T")


async def add(
    services: Services, principal: Principal, wish: Wish, *, is_dry: bool = False
) -> AutomationStatus:
    """Make an automation; a dry run only says what would be made, or why not."""
    wish = fitting(wish)
    if not principal.is_operator:
        await _check_own(services.views, principal, wish)
    acts, maker = services.automations, maker_of(principal)
    job = await _hiding_others(services.views, principal, acts.add(wish, maker, dry_run=is_dry))
    return await services.views.automations.status(job)


async def edit(
    services: Services, principal: Principal, named: str, changes: Edits, *, is_dry: bool = False
) -> AutomationStatus:
    """Change an automation; what is not given stays."""
    changes = fitting(changes)
    job = await _own(services, principal, named)
    if not principal.is_operator:
        await _check_own(services.views, principal, changes)
    acts, maker = services.automations, maker_of(principal)
    edited = acts.edit(job.id, changes, maker, dry_run=is_dry)
    job = await _hiding_others(services.views, principal, edited)
    return await services.views.automations.status(job)


async def pause(services: Services, principal: Principal, named: str) -> AutomationStatus:
    """Let nothing of an automation be due until it is resumed."""
    job = await _own(services, principal, named)
    paused = await services.automations.pause(job.id, maker_of(principal))
    return await services.views.automations.status(paused)


async def resume(services: Services, principal: Principal, named: str) -> AutomationStatus:
    """Let an automation be due again, from now on."""
    job = await _own(services, principal, named)
    resumed = services.automations.resume(job.id, maker_of(principal))
    job = await _hiding_others(services.views, principal, resumed)
    return await services.views.automations.status(job)


async def run(services: Services, principal: Principal, named: str) -> AutomationRun:
    """Run an automation now; its schedule stays as it is."""
    job = await _own(services, principal, named)
    return await services.automations.run(job.id, maker_of(principal))


async def remove(services: Services, principal: Principal, named: str) -> AutomationStatus:
    """Remove an automation; what waits of it is cancelled, what runs goes on."""
    job = await _own(services, principal, named)
    was = await services.views.automations.status(job)
    return replace(was, job=await services.automations.remove(job.id, maker_of(principal)))


async def import_jobs(
    services: Services, principal: Principal, jobs: Sequence[Any], sessions: Mapping[str, str]
) -> list[ImportedJob]:
    """Take over the jobs of another program: all that can be meant, or none if one cannot."""
    return await services.automations.import_jobs(jobs, sessions, maker_of(principal))


async def find(views: Views, principal: Principal, named: str) -> Automation:
    """Return the automation that somebody means by its id or its name, if they may see it."""
    return await views.automations.find(named, principal.viewer)


async def _own(services: Services, principal: Principal, named: str) -> Automation:
    """Return an automation that somebody may change."""
    job = await find(services.views, principal, named)
    owner = await services.views.sessions.owner_of(job.session_key)
    if not principal.is_operator and not rules.may_change(principal, owner):
        raise no_automation(named)
    return job


async def _check_own(views: Views, principal: Principal, wanted: Wish | Edits) -> None:
    """Refuse what only the operator may wish for: other sessions, none at all, and models."""
    if wanted.isolated is True:
        rule = "only the operator's run in sessions of their own: name one of yours"
        raise InvalidInput("session_key", rule)
    if isinstance(wanted.session_key, str):
        await _check_session(views, principal, wanted.session_key)
    payload: Payload | object = wanted.payload
    if isinstance(payload, AgentTurn) and (payload.model or payload.thinking):
        rule = "only the operator chooses a model, or how much it thinks"
        raise Forbidden("payload.model" if payload.model else "payload.thinking", rule)


async def _check_session(views: Views, principal: Principal, words: str) -> None:
    """Refuse a session that is not there, or somebody else's: both are told alike."""
    try:
        key: str = keys.canonical(words, views.bindings.default_agent, "session_key")
    except InvalidInput:
        key = words
        owner = None
    else:
        is_served = views.agents.knows(keys.agent_of(key))
        owner = await views.sessions.owner_of(SessionKey(key)) if is_served else None
    if owner is None or not rules.may_change(principal, owner):
        raise wishes.no_session(key)


async def _hiding_others(views: Views, principal: Principal, change: Awaitable[T]) -> T:
    """Wait for a change; who has a name already is told to those alone who may see it."""
    try:
        return await change
    except NameTaken as taken:
        if rules.sees_all(principal.viewer):
            raise
        seen = [one for one in taken.ids if await _is_seen(views, principal, one)]
        raise NameTaken(taken.name, seen) from None


async def _is_seen(views: Views, principal: Principal, job_id: str) -> bool:
    try:
        await find(views, principal, job_id)
    except InvalidInput:
        return False
    return True
