"""The command about what is done at certain times: `/cron`."""

from collections.abc import Callable
from datetime import tzinfo
from zoneinfo import ZoneInfo

from wakeful.automations.acts import AutomationActs
from wakeful.automations.wishes import Maker, maker_of
from wakeful.commands.command import Caller, Deed, Said, saying
from wakeful.services import Services
from wakeful.store.database import Tx
from wakeful.views.automations import AutomationFilter, AutomationStatus
from wakeful.vocabulary import wall
from wakeful.vocabulary.automation import AtSchedule, Automation, CronSchedule, EverySchedule
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.spans import format_span
from wakeful.vocabulary.text import one_line

MOST_SHOWN = 10
LONGEST_MESSAGE = 200
USAGE = "must be nothing, or show, next, pause, resume, run or rm with a name or an id"
NONE = "No automation runs here. `wakeful cron add` makes one, or ask me for an appointment."

Act = Callable[[Tx, Automation, Maker], str]


async def cron(services: Services, caller: Caller, rest: str) -> Deed:
    """List this session's automations, show one of them, or change it."""
    word, _, named = rest.strip().partition(" ")
    if not word:
        return await _listing(services, caller)
    act = _acts(services.automations).get(word.lower())
    named = named.strip()
    if not named or (act is None and word.lower() not in ("show", "next")):
        raise InvalidInput("action", USAGE)
    view = services.views.automations
    job = await view.find(named, caller.principal.viewer, caller.session_key)
    if act is None:
        zone = services.automations.zone
        shown = await view.status(job)
        now = services.views.clock.now()
        show = next_line if word.lower() == "next" else lines_of
        return saying(show(shown, zone, now))
    if not caller.principal.is_operator:
        return saying("Only the operator changes automations here.")
    maker = maker_of(caller.principal)
    return Deed(
        act=lambda tx: Said(text=act(tx, job, maker)), locks=tuple(services.automations.locks(job))
    )


async def _listing(services: Services, caller: Caller) -> Deed:
    wanted = AutomationFilter(session_key=caller.session_key)
    viewer = caller.principal.viewer
    page = await services.views.automations.page(viewer, wanted, None, MOST_SHOWN)
    now = services.views.clock.now()
    lines = [line_of(one, now) for one in page.items]
    more = ["… and more; `wakeful cron list` shows them"] if page.next is not None else []
    return saying("\n".join([*lines, *more]) or NONE)


def _acts(acts: AutomationActs) -> dict[str, Act]:
    """Return what may be done about an automation, by the word for it, and what is said then."""

    def pause(tx: Tx, job: Automation, maker: Maker) -> str:
        return f"{acts.pause_in(tx, job.id, maker).name} is paused. /cron resume lets it go on."

    def resume(tx: Tx, job: Automation, maker: Maker) -> str:
        resumed = acts.resume_in(tx, job.id, maker)
        return f"{resumed.name} goes on{_in(resumed, tx.now)}."

    def run(tx: Tx, job: Automation, maker: Maker) -> str:
        run = acts.run_in(tx, job.id, maker)
        if run.ended_at is not None:
            return f"{job.name} does not run now: {run.reason}."
        return f"{job.name} runs as soon as its session is idle."

    def remove(tx: Tx, job: Automation, maker: Maker) -> str:
        return f"{acts.remove_in(tx, job.id, maker).name} is gone."

    return {"pause": pause, "resume": resume, "run": run, "rm": remove}


def line_of(status: AutomationStatus, now: int) -> str:
    """Return an automation as a line: its state, when it is due, and how its last run ended."""
    job = status.job
    last = "" if job.last_status is None else f", last {job.last_status.value}"
    return f"{job.name}: {_state(status)}{_in(job, now)}{last} ({_when(job)})"


def lines_of(status: AutomationStatus, zone: tzinfo | None, now: int) -> str:
    """Return an automation as lines, with what it says and when it is due next."""
    job = status.job
    said = getattr(job.payload, "message", None) or getattr(job.payload, "text", "")
    return "\n".join(
        (
            f"{line_of(status, now)}, {job.id}",
            next_line(status, zone, now),
            f"says: {one_line(said, LONGEST_MESSAGE)}",
        )
    )


def next_line(status: AutomationStatus, zone: tzinfo | None, _now: int) -> str:
    """Tell when an automation is due next, on its own clocks."""
    named = status.job.schedule.tz if isinstance(status.job.schedule, CronSchedule) else None
    zone = ZoneInfo(named) if named else zone
    times = ", ".join(f"{wall.local(at, zone):%Y-%m-%d %H:%M:%S %Z}" for at in status.next_runs)
    return f"next: {times}" if times else "It is not due any more."


def _state(status: AutomationStatus) -> str:
    if status.running_since is not None:
        return "running"
    reason = status.job.disabled_reason
    return "on" if reason is None else reason.value


def _in(job: Automation, now: int) -> str:
    return "" if job.next_run_at is None else f", next in {format_span(job.next_run_at - now)}"


def _when(job: Automation) -> str:
    match job.schedule:
        case AtSchedule(at=at):
            return f"once, {at}"
        case EverySchedule(every_s=every_s):
            return f"every {format_span(every_s * 1000)}"
        case CronSchedule(expr=expr, tz=tz):
            return f"cron {expr}, {tz}"
