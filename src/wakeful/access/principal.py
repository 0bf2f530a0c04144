"""A principal: whoever stands behind a request, and what they may do."""

import re

from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import OPERATOR, Trust

_SCOPE = re.compile(r"operator|send|read|hub|(?:inbox|a2a):[a-z0-9][a-z0-9_.-]{0,63}")


class Principal(Record):
    """A credential that was accepted."""

    token_id: str
    name: str
    scopes: tuple[str, ...]
    owner: str
    trust: Trust
    expires_at: int | None = None

    def may(self, scope: str) -> bool:
        """Tell whether this principal has a scope; the operator has them all."""
        return OPERATOR in self.scopes or scope in self.scopes

    def sees(self, owner: str) -> bool:
        """Tell whether what belongs to `owner` may be shown; if not, it does not exist."""
        return self.owner in (OPERATOR, owner)


def checked_scopes(scopes: tuple[str, ...]) -> tuple[str, ...]:
    """Return scopes in order, or refuse the first unknown one."""
    if not scopes:
        raise InvalidInput("scopes", "must name at least one scope")
    for scope in scopes:
        if not _SCOPE.fullmatch(scope):
            raise InvalidInput(
                "scopes",
                "must be operator, send, read, hub, inbox:{source} or a2a:{peer}, "
                f"not {scope[:80]!r}",
            )
    return tuple(sorted(set(scopes)))
