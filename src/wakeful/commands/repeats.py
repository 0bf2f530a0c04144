"""Repeats: a command that comes again with its key is answered as before, and not done again."""

import msgspec

from wakeful.commands.command import Said
from wakeful.intake import dedup
from wakeful.store.database import Tx
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.stimulus import Draft

_said = msgspec.json.Decoder(Said)


class KeyReused(InvalidInput):
    """The key was used with another text."""


def first_answer(tx: Tx, draft: Draft) -> Said | None:
    """Return what was said when this command came first, or None if it did not come yet."""
    first = dedup.find(tx, _as_command(draft))
    if first is None:
        return None
    if first.body_hash != dedup.body_hash(draft):
        raise KeyReused("dedup_key", "was used with another text")
    return _said.decode(first.receipt)


def keep_answer(tx: Tx, draft: Draft, said: Said) -> None:
    """Keep what was said, for as long as the key counts; the first answer stays."""
    stimulus_id = "" if said.receipt is None else said.receipt.stimulus_id
    if dedup.claim(tx, _as_command(draft), stimulus_id) is None:
        dedup.keep_receipts(tx, [(_as_command(draft), said)])


def _as_command(draft: Draft) -> Draft:
    """Return the draft with a scope of its own: the text that a command files has the same key."""
    return msgspec.structs.replace(draft, scope=f"{draft.scope} commands")
