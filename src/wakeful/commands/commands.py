"""Run what people say to the runtime itself, and keep a line of it in the transcript."""

from wakeful.broker import lanes
from wakeful.commands import repeats, table
from wakeful.commands.command import Caller, Reach, Said
from wakeful.store.database import Tx
from wakeful.transcript import entries, sessions
from wakeful.transcript.entries import Line
from wakeful.vocabulary.entry import EntryKind, NoteBody
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.stimulus import Draft
from wakeful.vocabulary.text import clean, one_line

TOPIC = "command"
LONGEST_KEPT = 200  # characters of a command that the transcript keeps


class Commands:
    """The one place where a line becomes a command."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    async def run(self, caller: Caller) -> Said | None:
        """Do what a message commands; None if it is no command, but something for the agent."""
        text = caller.draft.text
        found = table.read(text, is_operator=caller.is_operator)
        if found is None:
            return None
        before = await self._said_before(caller.draft)
        if before is not None:
            return before
        command, rest = found
        if not table.may_use(caller, command):
            said = Said(text=f"Only the operator may use /{command.name}.")
        else:
            try:
                said = await command.act(self._reach, caller, clean(rest))
            except InvalidInput as error:
                said = Said(text=f"{command.usage}: {error.rule}")
        await self._note(caller, one_line(text, LONGEST_KEPT), said)
        return said

    async def _said_before(self, draft: Draft) -> Said | None:
        if draft.dedup_key is None:
            return None
        return await self._reach.store.write(lambda tx: repeats.first_answer(tx, draft))

    async def _note(self, caller: Caller, line: str, said: Said) -> None:
        """Keep what was said: for who repeats it, and in the transcript, where people read it and
        models do not.
        """
        key, draft = caller.session_key, caller.draft

        def write(tx: Tx) -> None:
            if draft.dedup_key is not None:
                repeats.keep_answer(tx, draft, said)
            session = sessions.get(tx, key)
            if session is None:
                return  # a look at a session that is not there does not make it
            body = NoteBody(topic=TOPIC, text=clean(f"{line}\n{said.text}"))
            entry = Line(id=self._reach.ids.entry(), kind=EntryKind.CUSTOM, body=body)
            entries.append(tx, session, [entry])

        await self._reach.store.write(write, locks=[lanes.lock(key)])
