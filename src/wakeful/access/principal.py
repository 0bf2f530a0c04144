"""A principal: whoever speaks at a door, and what they may do."""

import re
from typing import Self

from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import OPERATOR, Trust

READ = "read"
SEND = "send"
INBOX = "inbox:"  # before the name of a source

_SCOPE = re.compile(r"operator|send|read|hub|(?:inbox|a2a):[a-z0-9][a-z0-9_.-]{0,63}")


class Principal(Record):
    """Somebody whom a door knows: the operator, a token's holder, or a stranger."""

    name: str
    scopes: tuple[str, ...]
    owner: str  # of what it makes; empty: the room or peer it speaks from, as messaging names it
    trust: Trust
    token_id: str = ""  # empty: it came without a token
    expires_at: int | None = None

    @classmethod
    def operator(cls, name: str = OPERATOR) -> Self:
        """Return whoever runs the runtime: in a library, whoever calls it."""
        return cls(name=name, scopes=(OPERATOR,), owner=OPERATOR, trust=Trust.OPERATOR)

    @classmethod
    def stranger(cls, name: str = "stranger") -> Self:
        """Return somebody at a door of one's own: what they say is data, never instruction."""
        return cls(name=name, scopes=(SEND,), owner="", trust=Trust.EXTERNAL)

    @classmethod
    def hook(cls, name: str) -> Self:
        """Return a sender of webhooks: what it says is data, for the operator's agents."""
        return cls(name=name, scopes=(), owner=OPERATOR, trust=Trust.EXTERNAL)

    def may(self, scope: str) -> bool:
        """Tell whether this principal has a scope; the operator has them all."""
        return OPERATOR in self.scopes or scope in self.scopes

    @property
    def is_operator(self) -> bool:
        return OPERATOR in self.scopes

    @property
    def viewer(self) -> str:
        """Name the owner whose things this principal sees; the operator's are all things."""
        return OPERATOR if self.may(READ) else self.owner


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
