"""Who can reach the server, and whether the operator's token is strong enough for that."""

import ipaddress
import math
import string

from wakeful.settings.file import ServerSettings
from wakeful.vocabulary.errors import InvalidInput

TOKEN_BITS = 128
FEWEST_CHARACTERS = 8  # different ones: a repeated letter is no secret, however long

_ALPHABETS = (string.digits, string.hexdigits[:16], string.ascii_lowercase, string.ascii_letters)


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach a server that listens on `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def token_bits(token: str) -> float:
    """Return how many bits a random token of these characters has at most."""
    if len(set(token)) < FEWEST_CHARACTERS:
        return 0.0
    size = next((len(some) for some in _ALPHABETS if set(token) <= set(some)), 64)
    return len(token) * math.log2(size)


def refuse_weak_token(token: str) -> None:
    """Raise unless a token that the operator chose cannot be guessed."""
    if token_bits(token) < TOKEN_BITS or not token.isprintable() or " " in token:
        raise InvalidInput(
            "WAKEFUL_TOKEN",
            f"must be a random token of at least {TOKEN_BITS} bits without spaces, for example "
            "from `openssl rand -hex 32`",
        )


def refuse_exposed(server: ServerSettings, token: str | None) -> None:
    """Raise if others could reach the server and no token was chosen beforehand."""
    if token is not None:
        refuse_weak_token(token)
    elif not is_loopback(server.host):
        raise InvalidInput(
            "server.host",
            f"{server.host} can be reached by others, and there is no operator token yet: set "
            "WAKEFUL_TOKEN, or start once on 127.0.0.1, which creates operator.token",
        )
