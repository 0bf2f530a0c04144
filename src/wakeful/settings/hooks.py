"""Hooks in the settings: who may send webhooks, how that is proved, and what becomes of them."""

import re

from wakeful.doors.signing import read_keys
from wakeful.intake.draft import LONGEST_WINDOW_S, parse_priority
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.session_key import SessionKey, checked_agent_id
from wakeful.vocabulary.stimulus import NO_STORM_OVERRIDES, StormOverrides
from wakeful.vocabulary.text import is_plain
from wakeful.webhooks.hook import Hook
from wakeful.webhooks.template import Template, parse
from wakeful.webhooks.verification import Proof, Scheme

SHORTEST_SECRET = 16  # characters
SECRET_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})
NO_SECRET = "needs the key 'secret' or 'secret_file'"

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_HEADER = re.compile(r"[A-Za-z0-9-]{1,100}")
_SECRET = re.compile(r'"([^"]*)"|(\S+)')


class HookSettings(Record):
    """A sender of webhooks, under the name that stands in the address."""

    verify: Scheme
    secret: str | None = None  # or several with white space between them: each is good
    secret_file: str | None = None
    header: str | None = None  # of `hmac`
    agent: str = "main"
    session: str | None = None  # None: the agent's Activity
    priority: str = "next"
    dedup: str | None = None
    text: str = "{body}"
    dedup_window_s: int = LONGEST_WINDOW_S
    tools: tuple[str, ...] = ()
    storm: StormOverrides = NO_STORM_OVERRIDES


def hook_of(name: str, given: HookSettings, *, has_secret: bool = True) -> Hook:
    """Return a hook that can be used, or refuse the first key that cannot be meant.

    Without its secret, which may be elsewhere, everything else is checked.
    """
    at = f"hooks.{name}"
    if not _NAME.fullmatch(name):
        raise InvalidInput(at, "must have a name of 1 to 64 of a-z, 0-9, '_' and '-'")
    if not 1 <= given.dedup_window_s <= LONGEST_WINDOW_S:
        raise InvalidInput(f"{at}.dedup_window_s", f"must be from 1 to {LONGEST_WINDOW_S}")
    for position, tool in enumerate(given.tools):
        if not tool or not is_plain(tool):
            raise InvalidInput(f"{at}.tools[{position}]", "must be the name of a tool")
    return Hook(
        name=name,
        proof=Proof(
            scheme=given.verify,
            keys=_keys(given, at) if has_secret else (),
            header=_header(given, at),
        ),
        agent_id=checked_agent_id(given.agent, f"{at}.agent"),
        session_key=_session(given, at),
        has_session=given.session is not None,
        priority=parse_priority(given.priority, f"{at}.priority"),
        text=_template(given.text, f"{at}.text"),
        dedup=None if given.dedup is None else _template(given.dedup, f"{at}.dedup"),
        dedup_window_s=given.dedup_window_s,
        tools=given.tools,
        storm=given.storm,
    )


def secrets_in(text: str) -> list[str]:
    """Return the secrets that a text holds; one in double quotes may have spaces in it."""
    return [quoted or plain for quoted, plain in _SECRET.findall(text)]


def _keys(given: HookSettings, at: str) -> tuple[bytes, ...]:
    if not given.secret:
        raise InvalidInput(at, NO_SECRET)
    if given.verify is Scheme.STANDARD:
        return read_keys(given.secret, f"{at}.secret")
    found = secrets_in(given.secret)
    if not found or any(len(one) < SHORTEST_SECRET for one in found):
        raise InvalidInput(
            f"{at}.secret",
            f"must be at least {SHORTEST_SECRET} characters, for example from `openssl rand -hex "
            "32`; one with spaces stands in double quotes",
        )
    return tuple(one.encode() for one in found)


def _header(given: HookSettings, at: str) -> str:
    if given.verify is not Scheme.HMAC:
        if given.header is not None:
            raise InvalidInput(f"{at}.header", "is for 'verify: hmac' alone")
        return ""
    if given.header is None:
        raise InvalidInput(at, "needs the key 'header': where the sender puts its signature")
    if not _HEADER.fullmatch(given.header):
        raise InvalidInput(f"{at}.header", "must be the name of a header, such as X-Signature")
    return given.header.lower()


def _session(given: HookSettings, at: str) -> SessionKey:
    if given.session is None:
        return keys.activity(given.agent)
    key = keys.canonical(given.session, given.agent, f"{at}.session")
    if keys.agent_of(key) != given.agent:
        rule = f"is a session of {keys.agent_of(key)!r}, and the key 'agent' says {given.agent!r}"
        raise InvalidInput(f"{at}.session", rule)
    return key


def _template(text: str, field: str) -> Template:
    template = parse(text, field)
    if hidden := sorted(SECRET_HEADERS & template.headers):
        raise InvalidInput(field, f"must not show the header {hidden[0]!r}: it may hold a secret")
    return template
