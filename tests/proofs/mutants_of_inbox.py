"""Mutants that break what the inbox and webhooks promise."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from tests.proofs.patching import original, patch
from wakeful.store.database import Tx
from wakeful.tools.tool import LedgerContext
from wakeful.vocabulary.stimulus import State

READ = "wakeful.tools.check_inbox:check_inbox.function"
CHANGE = "wakeful.broker.inbox_counts:change"


def items_read_twice() -> None:
    """Show what was read without noting that it was."""
    read = original(READ)

    def read_unnoted(context: LedgerContext, **arguments: Any) -> Any:
        return read(replace(context, settle=_forget), **arguments)

    patch(READ, read_unnoted)


def _forget(ids: Sequence[str], state: State) -> None:
    pass


def counts_never_fall() -> None:
    """Count what is left in the inbox, and not that it was taken."""
    change = original(CHANGE)

    def only_add(tx: Tx, name: str, by: int) -> None:
        if by > 0:
            change(tx, name, by)

    patch(CHANGE, only_add)


def delivery_id_forgotten() -> None:
    """Take a webhook for a new one however often it comes."""

    def forget(*_: object) -> None:
        return None

    patch("wakeful.webhooks.hook:_dedup_key", forget)
