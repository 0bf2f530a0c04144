"""Entries that name other entries: by our ids in the ledger, by their names in a file."""

from collections.abc import Mapping

import msgspec

from wakeful.vocabulary.entry import Body, CompactionBody, EntryKind, NoteBody

_TOPIC_IS_ENTRY = frozenset({EntryKind.LABEL, EntryKind.BRANCH_SUMMARY, EntryKind.CONTEXT_EDIT})


def references(kind: EntryKind, body: Body) -> list[str]:
    """Return what an entry calls the entries that it names."""
    match body:
        case NoteBody() if kind in _TOPIC_IS_ENTRY:
            named = [body.topic]
        case CompactionBody():
            named = [body.previous, body.undoes]
        case _:
            named = []
    return [name for name in named if name]


def renamed(kind: EntryKind, body: Body, names: Mapping[str, str]) -> Body:
    """Return the entry with other names for those it names; unknown ones are kept."""
    if not names:
        return body
    match body:
        case NoteBody() if kind in _TOPIC_IS_ENTRY:
            return msgspec.structs.replace(body, topic=names.get(body.topic, body.topic))
        case CompactionBody():
            return msgspec.structs.replace(
                body,
                previous=names.get(body.previous or "", body.previous),
                undoes=names.get(body.undoes or "", body.undoes),
            )
        case _:
            return body
