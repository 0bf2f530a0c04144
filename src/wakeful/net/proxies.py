"""Which proxy leads to a place, by the usual variables of the environment."""

import ipaddress
import re
from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import unquote_to_bytes

from wakeful.net.target import PORTS, Target, parse
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record

_PARTS = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*)://)?(?:(.*)@)?([^@/]*)/?")


class Proxy(Record):
    """Somebody who connects to other places on our behalf."""

    target: Target
    authorization: str = ""  # a header's value; empty: it lets everybody through


def proxy_to(target: Target, environ: Mapping[str, str]) -> Proxy | None:
    """Return the proxy that a place is reached through; None if it is connected to directly.

    `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` are read as `httpx` reads them, in small
    letters first; but this machine itself is never looked for at a proxy. Raises InvalidInput,
    which names the variable and never its value, for one that cannot be used.
    """
    if _is_here(target.host) or _is_excepted(target, _said("no_proxy", environ)[1]):
        return None
    for name in (f"{target.scheme}_proxy", "all_proxy"):
        variable, value = _said(name, environ)
        if value:
            return _read(value, variable)
    return None


def _said(name: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return a variable that is set, and its value."""
    if name in environ:
        return name, environ[name].strip()
    # In a CGI program this one is a header that anybody may send.
    if name == "http_proxy" and "REQUEST_METHOD" in environ:
        return name, ""
    return name.upper(), environ.get(name.upper(), "").strip()


def _read(value: str, variable: str) -> Proxy:
    parts = _PARTS.fullmatch(value)
    scheme = "" if parts is None else (parts[1] or "http").lower()
    if parts is None or scheme not in PORTS:
        raise InvalidInput(variable, "must name a proxy as http://host:port or https://host:port")
    target = parse(f"{scheme}://{parts[3]}", variable)
    if parts[2] is None:
        return Proxy(target=target)
    name, _, password = parts[2].partition(":")
    pair = unquote_to_bytes(name) + b":" + unquote_to_bytes(password)
    return Proxy(target=target, authorization=f"Basic {b64encode(pair).decode()}")


def _is_here(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_excepted(target: Target, exceptions: str) -> bool:
    return any(_covers(entry.strip().lower(), target) for entry in exceptions.split(","))


def _covers(entry: str, target: Target) -> bool:
    """Tell whether an entry of NO_PROXY means a place; one that nobody understands means none."""
    if entry == "*":
        return True
    scheme, separator, rest = entry.rpartition("://")
    if separator and scheme not in ("all", target.scheme):
        return False
    network = _network(rest)
    if network is not None:
        address = target.address
        return address is not None and address.version == network.version and address in network
    host, port = _place(rest)
    if not host or (port is not None and port != target.port):
        return False
    if separator:  # a whole url means this very host
        return target.host == host
    return target.host == host or target.host.endswith(f".{host.removeprefix('.')}")


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    address, slash, prefix = text.partition("/")
    try:
        return ipaddress.ip_network(address.strip("[]") + slash + prefix, strict=False)
    except ValueError:
        return None


def _place(text: str) -> tuple[str, int | None]:
    host, colon, port = text.rpartition(":")
    if colon and port.isdecimal():
        return host.strip("[]"), int(port)
    return text.strip("[]"), None
