"""How a model's name is answered: by which provider, where, and with which key.

What cannot work is refused here, at the start, as far as that is cheap to tell.
"""

import re
from collections.abc import Mapping
from importlib.util import find_spec

from wakeful.models.providers import (
    NONE_OWN,
    PROVIDERS,
    Provider,
    Providers,
    ProviderSettings,
    Via,
    WireFormat,
)
from wakeful.models.suggestions import suggestion
from wakeful.net.proxies import Proxy, proxy_to
from wakeful.net.target import Target, parse
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record

LIBRARY = "pydantic_ai"

_ENDPOINTS = ("/chat/completions", "/responses", "/messages")  # which are no base addresses
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_FRAMING = frozenset(
    {
        *("accept-encoding", "connection", "content-encoding", "content-length", "content-type"),
        *("expect", "host", "keep-alive", "proxy-authorization", "te", "trailer"),
        *("transfer-encoding", "upgrade"),
    }
)
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


class Chosen(Record):
    """How a model's name is to be answered: by whom, where, and with which key."""

    name: str
    provider: str  # as the name begins
    model: str
    system: str
    kind: WireFormat | None  # None: by the library
    base_url: str
    key: str
    proxy: Proxy | None = None  # through which it is reached
    headers: Mapping[str, str] = {}  # that go along with every question


def refuse_unknown(name: str, field: str = "model", *, own: Providers = NONE_OWN) -> None:
    """Raise for a name that is no model's, whoever may ask it."""
    if name == "demo":
        return
    prefix, separator, model = name.partition(":")
    if not separator or not model:
        rule = f"must be 'demo' or 'provider:model', not {name[:80]!r}{_instead(name, own)}"
        raise InvalidInput(field, rule)
    if prefix not in PROVIDERS and prefix not in own:
        known = ", ".join([*PROVIDERS, *sorted(own)])
        rule = f"must name a provider of {known}, not {prefix[:80]!r}{_instead(name, own)}"
        raise InvalidInput(field, rule)


def choose(
    name: str, environ: Mapping[str, str], own: Providers = NONE_OWN, field: str = "model"
) -> Chosen:
    """Return how a name is answered; raise for one that no provider could answer under, as far as
    that is cheap to tell.
    """
    refuse_unknown(name, field, own=own)
    prefix, _, model = name.partition(":")
    described = own.get(prefix, ProviderSettings())
    provider = PROVIDERS.get(prefix, Provider())
    kind = described.kind or provider.kind
    if described.via is Via.LIBRARY:
        kind = None
    if kind is None:
        _refuse_missing_package(prefix, provider, field)
    key = described.key if described.key is not None else _key(prefix, provider, environ, field)
    base_url = described.base_url or _base_url(provider, environ)
    if provider.is_own_server:
        base_url = _with_path(base_url)
    is_described = described.key is not None or described.base_url is not None
    if (
        not is_described
        and provider.wanted
        and not any(environ.get(one) for one in provider.wanted)
    ):
        wanted = " or ".join(provider.wanted)
        rule = f"{prefix!r} needs {wanted} in the environment, or in the file 'environment' of the home"  # noqa: E501
        raise InvalidInput(field, rule)
    proxy = None
    if kind is not None:
        where = provider.address or f"providers.{prefix}.base_url"
        proxy = _proxy(_address(base_url, where, field), environ, field)
    return Chosen(
        name=name,
        provider=prefix,
        model=model,
        system=provider.system or prefix,
        kind=kind,
        base_url=base_url,
        key=key,
        proxy=proxy,
        headers={
            **{
                name: value for variable, name in provider.tells if (value := environ.get(variable))
            },
            **described.headers,
        },
    )


def _instead(name: str, own: Providers) -> str:
    """Say what to write instead of a name."""
    meant = suggestion(name, [*PROVIDERS, *own])
    if meant is not None:
        return f"; write {meant[:120]!r}"
    if ":" not in name:
        return ""
    return "; any other is described under 'providers', with kind, base_url and key_file"


def refuse_unusable(name: str, environ: Mapping[str, str], field: str = "model") -> None:
    """Raise for a name that no provider could answer under, as far as that is cheap to tell."""
    choose(name, environ, field=field)


def refuse_bad_provider(name: str, given: ProviderSettings) -> None:
    """Raise for a provider of the operator's that could not be asked anything."""
    at = f"providers.{name}"
    if _NAME.fullmatch(name) is None:
        raise InvalidInput(at, "must be named with small letters, digits, - and _, at most 40")
    known = PROVIDERS.get(name)
    if known is None and given.kind is None:
        kinds = ", ".join(WireFormat)
        raise InvalidInput(at, f"needs the key 'kind', one of {kinds}: it is no known provider")
    if given.via is Via.LIBRARY and (known is None or not known.package):
        raise InvalidInput(f"{at}.via", "must be 'direct': the library does not know this provider")
    if known is not None and known.kind is None and given.kind is None:
        if given.via is Via.DIRECT:
            rule = "must be 'library', or 'kind' must be given: it has a language of its own"
            raise InvalidInput(f"{at}.via", rule)
    elif known is None and given.base_url is None:
        raise InvalidInput(at, "needs the key 'base_url'")
    if given.base_url is not None:
        parse(given.base_url, f"{at}.base_url")
    if given.key is not None and not (given.key and _is_sendable(given.key)):
        raise InvalidInput(f"{at}.key", "must be one line of plain letters, as keys are")
    _refuse_bad_headers(at, given)


def _refuse_bad_headers(at: str, given: ProviderSettings) -> None:
    if given.headers and given.via is Via.LIBRARY:
        raise InvalidInput(f"{at}.headers", "must not be given with 'via: library'")
    for name, value in given.headers.items():
        if _HEADER.fullmatch(name) is None or not _is_sendable(value):
            rule = "must be printable ASCII on one line, without blanks around it"
            raise InvalidInput(f"{at}.headers.{name[:80]}", rule)
        if name.lower() in _FRAMING:
            raise InvalidInput(f"{at}.headers.{name}", "must be another one: it is ours to send")


def _base_url(provider: Provider, environ: Mapping[str, str]) -> str:
    """Return where a provider is: where the environment says, else where it usually is."""
    if elsewhere := environ.get(provider.address):
        return elsewhere
    host = environ.get(provider.host, "").strip()
    return _of_host(host) if host else provider.base_url


def _with_path(base_url: str) -> str:
    """Return the address of a server of one's own, which other tools know without its path."""
    place = base_url.partition("://")[2].rstrip("/")
    return f"{base_url.rstrip('/')}/v1" if place and "/" not in place else base_url


def _of_host(host: str) -> str:
    """Return the address that OLLAMA_HOST means, which may say where to listen instead."""
    scheme, separator, place = host.rpartition("://")
    place = place.rstrip("/")
    name, colon, port = place.rpartition(":")
    if not colon or "]" in port:
        name, port = place, "11434"
    if name in ("", "0.0.0.0", "[::]"):
        name = "127.0.0.1"
    return f"{scheme if separator else 'http'}://{name}:{port}/v1"


def _key(prefix: str, provider: Provider, environ: Mapping[str, str], field: str) -> str:
    """Return the key that the environment holds; empty if there is none."""
    value = (variable for variable, _ in provider.tells)
    for variable in (*provider.keys, provider.address, *value):
        if not _is_sendable(environ.get(variable, "")):
            rule = f"{prefix!r} cannot use {variable}: it has blanks around it, or letters that no request has"  # noqa: E501
            raise InvalidInput(field, rule)
    return next((value for key in provider.keys if (value := environ.get(key))), "")


def _address(base_url: str, where: str, field: str) -> Target:
    for end in _ENDPOINTS:
        if base_url.rstrip("/").endswith(end):
            rule = f"cannot use {where}: it must end before {end!r}, which is added to it"
            raise InvalidInput(field, rule)
    try:
        return parse(base_url, where)
    except InvalidInput as error:
        raise InvalidInput(field, f"cannot use {where}: it {error.rule}") from None


def _proxy(target: Target, environ: Mapping[str, str], field: str) -> Proxy | None:
    try:
        return proxy_to(target, environ)
    except InvalidInput as error:
        rule = f"cannot use {error.field}: it {error.rule}; NO_PROXY excepts hosts from it"
        raise InvalidInput(field, rule) from None


def _refuse_missing_package(prefix: str, provider: Provider, field: str) -> None:
    if not (_is_installed(LIBRARY) and _is_installed(provider.package)):
        raise InvalidInput(field, f"{prefix!r} needs a package: pip install '{provider.install}'")


def _is_sendable(value: str) -> bool:
    """Tell whether a value can stand in a request; a file from Windows leaves line ends in it."""
    return value.isascii() and value.isprintable() and value == value.strip()


def _is_installed(package: str) -> bool:
    """Look for a package without importing it."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # what it lies in is missing
        return False
