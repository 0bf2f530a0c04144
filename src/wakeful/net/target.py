"""Where a request goes: a url taken apart by the one strict reading that is ever used.

Whatever two parsers could read in two ways is refused: user names, backslashes, spaces, letters
beyond ASCII, dots at the end, and every spelling of an address but the plain one.
"""

import ipaddress
import re

from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record

USER_AGENT = "wakeful"  # who asks, as every place is told
LONGEST_URL = 2048
LONGEST_NAME = 253
PORTS = {"http": 80, "https": 443}

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_PLAIN = re.compile(r"[\x21-\x7e]+")
_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^#]*)(#.*)?")
_PLACE = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]+))?")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PATH = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*")


class Target(Record):
    """A place that a request may be sent to, if its address may be connected to."""

    scheme: str
    host: str  # a name in small letters, or an address without brackets
    port: int
    path: str  # with the query; never told to anybody, since many a path holds a secret

    @property
    def address(self) -> Address | None:
        """The address, if the url holds one rather than a name."""
        try:
            return ipaddress.ip_address(self.host)
        except ValueError:
            return None

    @property
    def place(self) -> str:
        """Host and port as the receiver is told them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


def parse(url: str, field: str = "url") -> Target:
    """Return the only thing that a url can mean; raise InvalidInput, without the url, if unsure."""
    if len(url) > LONGEST_URL:
        raise InvalidInput(field, f"must be at most {LONGEST_URL} characters")
    if _PLAIN.fullmatch(url) is None:
        raise InvalidInput(
            field, "must be ASCII without spaces: names in their xn-- form, the rest as %XX"
        )
    parts = _PARTS.fullmatch(url)
    if parts is None or parts[1].lower() not in PORTS:
        raise InvalidInput(field, "must be http://… or https://…")
    if parts[4] is not None:
        raise InvalidInput(field, "must have no #fragment: it is never sent")
    scheme = parts[1].lower()
    host, port = _place(parts[2], field)
    path = parts[3] if parts[3].startswith("/") else f"/{parts[3]}"
    if _PATH.fullmatch(path) is None:
        raise InvalidInput(field, "has a path with a character that must be written as %XX")
    return Target(scheme=scheme, host=host, port=port or PORTS[scheme], path=path)


def is_name(host: str) -> bool:
    """Tell whether this is a host name in the spelling that targets have."""
    labels = host.split(".")
    return (
        len(host) <= LONGEST_NAME
        and all(_LABEL.fullmatch(label) for label in labels)
        and _NUMBER.fullmatch(labels[-1]) is None
    )


def _place(text: str, field: str) -> tuple[str, int | None]:
    if "@" in text:
        raise InvalidInput(field, "must hold no user name or password")
    found = _PLACE.fullmatch(text)
    if found is None:
        raise InvalidInput(field, "must name a host, and a port only as a number after a colon")
    host = found[1].lower()
    port = None if found[2] is None else _port(found[2], field)
    if host.startswith("["):
        return _address(host[1:-1], 6, field), port
    if _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]) is not None:
        return _address(host, 4, field), port
    if not is_name(host):
        raise InvalidInput(field, "must have a host name of plain labels, without a dot at its end")
    return host, port


def _port(digits: str, field: str) -> int:
    if len(digits) > 5 or digits.startswith("0") or int(digits) > 65_535:
        raise InvalidInput(field, "must have a port from 1 to 65535")
    return int(digits)


def _address(text: str, version: int, field: str) -> str:
    """Return an address as it is written; `ipaddress` refuses short, octal and hex forms."""
    try:
        return str(ipaddress.IPv4Address(text) if version == 4 else ipaddress.IPv6Address(text))
    except ValueError:
        raise InvalidInput(
            field, "must have its address in the plain form, such as 192.0.2.1"
        ) from None
