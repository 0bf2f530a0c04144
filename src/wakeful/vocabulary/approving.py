"""What an agent's tools may do by themselves, and what somebody must approve first."""

from collections.abc import Mapping
from enum import StrEnum

from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.spans import parse_span

SHORTEST_MS = 60_000
LONGEST_MS = 366 * 86_400_000
WEEK = "7d"


class Permission(StrEnum):
    """What becomes of a call."""

    ALLOW = "allow"
    ASK = "ask"  # it waits until somebody has approved it
    DENY = "deny"


class ExpiryDefault(StrEnum):
    """What an approval comes to that nobody has decided in time."""

    DENY = "deny"
    ALLOW = "allow"


class ApprovalKind(StrEnum):
    TOOL = "tool"  # may this call run?
    QUESTION = "question"


class ApprovalState(StrEnum):
    OPEN = "open"
    GRANTED = "granted"  # of a question: answered
    DENIED = "denied"
    EXPIRED = "expired"  # nobody decided in time
    CANCELLED = "cancelled"  # its session is gone or began anew, or its call can run no more


class ApprovalDecision(StrEnum):
    APPROVE = "approve"
    DENY = "deny"


class ToolPermission(Record):
    """The rule of one tool, in its long form."""

    rule: Permission
    expires: str = WEEK  # how long a request waits for an answer
    default: ExpiryDefault = ExpiryDefault.DENY

    @property
    def expires_ms(self) -> int:
        return parse_span(self.expires, "expires")


Permissions = dict[str, Permission | ToolPermission]  # by the name of the tool

_ALLOWED = ToolPermission(rule=Permission.ALLOW)


def permission_of(rules: Mapping[str, Permission | ToolPermission], tool: str) -> ToolPermission:
    """Return what an agent's rules say about a tool; what they do not name is allowed."""
    found = rules.get(tool)
    if found is None:
        return _ALLOWED
    return found if isinstance(found, ToolPermission) else ToolPermission(rule=found)


def read(rules: Mapping[str, Permission | ToolPermission | str]) -> Permissions:
    """Return rules as a program gives them, words included."""
    return {
        name: rule if isinstance(rule, Permission | ToolPermission) else _word(name, rule)
        for name, rule in rules.items()
    }


def checked(rules: Permissions, field: str = "approvals") -> Permissions:
    """Return the rules, or refuse the first that cannot be meant."""
    for name, rule in rules.items():
        if not name.strip():
            raise InvalidInput(field, "must name tools")
        if isinstance(rule, Permission):
            continue
        at = f"{field}.{name}.expires"
        if not SHORTEST_MS <= parse_span(rule.expires, at) <= LONGEST_MS:
            raise InvalidInput(at, f"must be from 1m to 366d, not {rule.expires!r}")
    return rules


def _word(name: str, word: str) -> Permission:
    try:
        return Permission(word)
    except ValueError:
        known = ", ".join(Permission)
        rule = f"must be one of {known}, not {str(word)[:40]!r}"
        raise InvalidInput(f"approvals.{name}", rule) from None
