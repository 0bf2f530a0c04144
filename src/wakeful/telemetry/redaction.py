"""Redaction: no secret leaves in a log, whichever way it came into the words."""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote

HIDDEN = "(hidden)"
SHORTEST = 8  # of a variable's value: a shorter one would hide half of every line

_SECRET_VARIABLES = re.compile(r"(?i).*(?:_KEY|_TOKEN|_SECRET|_PASSWORD)|AWS_BEARER_TOKEN_BEDROCK")

# Whatever looks like a credential, also one that nobody told us. Each keeps what names the secret.
_LOOKS = (
    re.compile(r"()\b(?:wk_|whsec_)[\w+/=-]{16,}"),  # made by us
    re.compile(r"(?i)(\bbearer +)[\w.~+/=-]{8,}"),
    re.compile(r"(?i)(\bauthorization\b[\"']?[:=,] *b?[\"']?(?:[a-z]+ +)?)[^\s\"',;]+"),
    re.compile(r"(?i)(\b(?:set-)?cookie\b[\"']?[:=,] *b?[\"']?)[^\r\n\"']+"),
    re.compile(r"(?i)(\bx-(?:goog-)?api-key\b[\"']?[:=,] *b?[\"']?)[^\s\"',;]+"),
    re.compile(r"(?i)([?&#](?:token|access_token|api_?key|key|authorization|code)=)[^\s&\"'#]+"),
    re.compile(r"(://[^\s/:@]*:)[^\s/@]+(?=@)"),  # the password of an address
)


class Redaction:
    """Knows some secrets by heart, and the others by their looks."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {secret for secret in secrets if secret}
        known |= {quote(secret, safe="") for secret in known}
        # Longest first: one secret may hold another.
        ordered = sorted(known, key=lambda secret: (-len(secret), secret))
        self._known = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def hide(self, text: str) -> str:
        """Return a text in which no secret stands."""
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        for look in _LOOKS:
            text = look.sub(rf"\1{HIDDEN}", text)
        return text


def secrets_in(environ: Mapping[str, str]) -> list[str]:
    """Return the secrets of an environment: our token, and what providers of models ask for."""
    return [
        value
        for name, value in environ.items()
        if _SECRET_VARIABLES.fullmatch(name) and len(value) >= SHORTEST
    ]
