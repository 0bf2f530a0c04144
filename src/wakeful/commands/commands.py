"""Run what people say to the runtime itself, and keep a line of it in the transcript."""

from msgspec.structs import replace

from wakeful.access import rules
from wakeful.broker import lane_rows
from wakeful.commands import table
from wakeful.commands.command import Caller, Command, Deed, Said, saying
from wakeful.intake import dedup
from wakeful.services import Services
from wakeful.store.database import Tx
from wakeful.transcript import entries, sessions
from wakeful.transcript.entries import NewEntry
from wakeful.vocabulary.entry import EntryKind, NoteBody
from wakeful.vocabulary.errors import InvalidInput, NotFound
from wakeful.vocabulary.failpoints import failpoint
from wakeful.vocabulary.stimulus import Outcome, Receipt, Trust
from wakeful.vocabulary.text import clean, one_line

TOPIC = "command"
LONGEST_KEPT = 200  # characters of a command that the transcript keeps

_LOST = "\nWhat came along with it was not kept."


async def run(services: Services, caller: Caller) -> Receipt | None:
    """Do what a message commands; None if it is no command, but something for the agent.

    One that comes again with its key is answered as before, and not done again.
    """
    found = table.read(caller.draft, caller.principal)
    if found is None:
        return None
    command, rest = found
    caller = replace(caller, draft=services.intake.checked(caller.draft))
    try:
        deed = await _planned(services, caller, command, rest)
        receipt = await _done(services, caller, deed)
    except dedup.KeyReused:
        raise
    except InvalidInput as error:  # nothing was done, and that is the answer
        deed = saying(f"{command.usage}: {error.rule}")
        receipt = await _done(services, caller, deed)
    if deed.afterwards is not None:
        await deed.afterwards()
    return receipt


async def _planned(services: Services, caller: Caller, command: Command, rest: str) -> Deed:
    if not command.is_for(caller.principal):
        return saying(f"Only the operator may use /{command.name}.")
    return await command.plan(services, caller, clean(rest))


async def _done(services: Services, caller: Caller, deed: Deed) -> Receipt:
    """Take the key, act, and keep the answer, in one commit."""
    draft = caller.draft
    line = one_line(draft.text, LONGEST_KEPT)

    def write(tx: Tx) -> Receipt:
        _check_holder(tx, caller)
        first = None if draft.dedup_key is None else dedup.claim(tx, draft, "")
        if first is not None:
            return dedup.first_answer(first, draft)
        said = deed.act(tx)
        if draft.attachments and said.receipt is None:
            said = replace(said, text=said.text + _LOST)
        _note(services, tx, caller, f"{line}\n{said.text}")
        receipt = _receipt(caller, said)
        if draft.dedup_key is not None:
            dedup.keep_receipts(tx, [(draft, receipt)])
        return receipt

    failpoint("command-read")
    receipt = await services.views.store.transact(
        write, locks=[lane_rows.lock(draft.session_key), *deed.locks]
    )
    failpoint("command-done")
    return receipt


def _check_holder(tx: Tx, caller: Caller) -> None:
    """Refuse a session that somebody else has made since the door looked, or had and deleted."""
    key = caller.session_key
    session = sessions.get(tx, key)
    holder = sessions.past_owners(tx, [key]).get(key) if session is None else session.owner
    if holder is not None and not rules.may_write(caller.draft.owner, holder):
        raise NotFound("session_key", f"no session {key!r}")


def _note(services: Services, tx: Tx, caller: Caller, text: str) -> None:
    """Keep what was said in the transcript, where people read it and models do not."""
    session = sessions.get(tx, caller.session_key)
    if session is None:
        return  # a look at a session that is not there does not make it
    is_external = caller.draft.trust is Trust.EXTERNAL
    body = NoteBody(topic=TOPIC, text=clean(text), is_external=is_external)
    entries.append(
        tx, session, [NewEntry(id=services.ids.entry(), kind=EntryKind.CUSTOM, body=body)]
    )


def _receipt(caller: Caller, said: Said) -> Receipt:
    filed = said.receipt
    return Receipt(
        stimulus_id="" if filed is None else filed.stimulus_id,
        session_key=caller.session_key,
        outcome=Outcome.COMMAND,
        turn_id=None if filed is None else filed.turn_id,
        reply=said.text,
    )
