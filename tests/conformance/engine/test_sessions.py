"""Resets, forks and deletions are the same on each database."""

from collections.abc import Sequence

import pytest

from tests.conformance.engine.conftest import SettingsFor
from wakeful.intake.sessions import Changes
from wakeful.models.model import Request
from wakeful.runtime import Runtime
from wakeful.testing.kit import Pause, Scripted, call, in_memory, operator_draft, says, wait_for
from wakeful.tools.tool import tool
from wakeful.transcript import forks
from wakeful.transcript.indexing import Indexer
from wakeful.transcript.search import Role
from wakeful.turns.turns import TurnState
from wakeful.views import cards, transcripts
from wakeful.views.search import SearchView, Wanted
from wakeful.vocabulary.entry import AssistantBody, Entry, EntryKind, NoteBody, UserBody, chain
from wakeful.vocabulary.errors import InvalidInput, NotFound, Underway
from wakeful.vocabulary.queueing import Mode, QueueOverrides
from wakeful.vocabulary.session_key import SessionKey
from wakeful.vocabulary.stimulus import Outcome, Priority

MAIN = SessionKey("agent:main:main")


def echo(request: Request) -> str:
    return f"re: {heard(request)[-1]}"


def heard(request: Request) -> list[str]:
    return [message.text for message in request.messages]


async def say(runtime: Runtime, text: str, session: str = "main") -> None:
    turn = await runtime.wait(await runtime.send(text, session=session))
    assert turn is not None


def texts(entries: Sequence[Entry]) -> list[str]:
    found: list[str] = []
    for entry in entries:
        match entry.content():
            case UserBody() | NoteBody() as body:
                found.append(body.text)
            case AssistantBody() as body:
                found.append(body.message.text)
            case _:
                found.append(entry.kind)
    return found


async def said(runtime: Runtime, session: str = "main", transcript: str | None = None) -> list[str]:
    return texts(await runtime.entries(session, transcript=transcript))


async def is_chained(runtime: Runtime, session: str = "main") -> bool:
    """Tell whether the path of a session is one chain of parents, depths and hashes."""
    parent, last = None, ""
    for depth, entry in enumerate(await runtime.entries(session)):
        last = chain(last, entry.id, entry.kind, entry.body)
        if (entry.parent_id, entry.depth, entry.hash) != (parent, depth, last):
            return False
        parent = entry.id
    return True


async def test_a_reset_begins_anew_and_keeps_what_was_said(lasting: SettingsFor):
    model = Scripted(echo)
    async with in_memory(model, settings=lasting()) as runtime:
        await say(runtime, "one")
        await runtime.choose("main", Changes(label="L", activation="always", thinking="high"))
        done = await runtime.reset()
        await say(runtime, "two")
        new, old = await runtime.transcripts()
        (row,) = await runtime.store.read(
            "SELECT label, overrides, input_tokens, seen_depth FROM sessions "
            "WHERE key NOT LIKE '%:activity'"
        )
        past = await said(runtime, transcript=old.tip.transcript_id)
        event = await wait_for(runtime, "session.reset")

    assert not done.is_waiting
    assert (done.transcript_id, new.tip.transcript_id) == (new.tip.transcript_id,) * 2
    assert (new.is_current, old.is_current, old.ended_by) == (True, False, "reset")
    assert past == ["one", "re: one"]
    assert heard(model.requests[-1]) == ["two"]
    assert (row[0], "always" in row[1], "high" in row[1]) == ("L", True, False)
    assert event.data == {
        "transcript_id": new.tip.transcript_id,
        "past": old.tip.transcript_id,
        "by": "reset",
    }


async def test_a_reset_waits_for_the_open_turn_and_what_waits_comes_after_it(
    lasting: SettingsFor,
):
    pause = Pause("slow")
    async with in_memory(Scripted([pause, "after"]), settings=lasting()) as runtime:
        first = await runtime.send("first")
        await pause.reached.wait()
        done = await runtime.reset()
        second = await runtime.send("second")
        pause.go_on.set()
        await runtime.wait(first)
        await runtime.wait(second)
        new, old = await runtime.transcripts()
        past, now = await said(runtime, transcript=old.tip.transcript_id), await said(runtime)

    assert done.is_waiting
    assert second.outcome is Outcome.QUEUED
    assert (past, now) == (["first", "slow"], ["second", "after"])
    assert new.is_current


async def test_two_commands_that_begin_anew_are_two_conversations(lasting: SettingsFor):
    pause = Pause("slow")
    model = Scripted([pause, "old", "a", "b"])
    async with in_memory(model, settings=lasting()) as runtime:
        await runtime.send("first")
        await pause.reached.wait()
        drafts = [
            operator_draft(MAIN, text="waits"),
            operator_draft(MAIN, text="new a", begins="/new"),
            operator_draft(MAIN, text="new b", begins="/new"),
        ]
        await runtime.set_queue("main", QueueOverrides(mode=Mode.FOLLOWUP))
        receipts = [await runtime.accept(draft) for draft in drafts]
        pause.go_on.set()
        for receipt in receipts:
            await runtime.wait(receipt)
        cards = await runtime.transcripts()
        told = [await said(runtime, transcript=card.tip.transcript_id) for card in cards]

    assert told == [["new b", "b"], ["new a", "a"], ["first", "slow", "waits", "old"]]
    assert [card.ended_by for card in cards] == [None, "/new", "/new"]


async def test_interrupted_work_is_shown_again_in_a_new_transcript(lasting: SettingsFor):
    pauses = [Pause("slow"), Pause("again")]
    model = Scripted([pauses[0], "urgent", pauses[1]])
    async with in_memory(model, settings=lasting()) as runtime:
        work = await runtime.send("work")
        await pauses[0].reached.wait()
        urgent = operator_draft(
            session_key=MAIN, text="urgent", priority=Priority.NOW, begins="/new"
        )
        await runtime.wait(await runtime.accept(urgent))
        await pauses[1].reached.wait()
        pauses[1].go_on.set()
        turn = await runtime.wait(work)
        now = await said(runtime)

    assert turn is not None
    assert turn.reply == "again"
    assert now == ["urgent", "urgent", "work", "again"]
    assert heard(model.requests[2]) == ["urgent", "urgent", "work"]


async def test_a_fork_goes_on_from_an_entry_and_shares_what_came_before(
    lasting: SettingsFor,
):
    model = Scripted(echo)
    async with in_memory(model, settings=lasting()) as runtime:
        for text in ("one", "two", "three"):
            await say(runtime, text)
        before = await runtime.entries()
        await runtime.fork(at=before[1].id, summary="it was a dead end")
        await say(runtime, "other")
        await runtime.fork(at=before[3].id)  # of the branch that was left
        await say(runtime, "third way")
        (card,) = await runtime.transcripts()
        paths = [await said(runtime, transcript=tip.leaf_id) for tip in card.branches]
        is_whole = await is_chained(runtime)
        rows = await runtime.store.read("SELECT COUNT(*) FROM entries")

    assert paths == [
        ["one", "re: one", "two", "re: two", "three", "re: three"],
        ["one", "re: one", "it was a dead end", "other", "re: other"],
        ["one", "re: one", "two", "re: two", "third way", "re: third way"],
    ]
    assert [heard(request) for request in model.requests[-2:]] == [
        ["one", "re: one", "it was a dead end", "other"],
        ["one", "re: one", "two", "re: two", "third way"],
    ]
    assert is_whole
    assert rows[0][0] == 6 + 3 + 2


async def test_a_fork_into_a_new_session_leaves_the_old_one_alone(lasting: SettingsFor):
    async with in_memory(Scripted(echo), settings=lasting()) as runtime:
        await say(runtime, "one")
        forked = await runtime.fork(to="copy")
        await say(runtime, "left")
        await say(runtime, "right", "copy")
        told = await said(runtime), await said(runtime, "copy")
        chained = await is_chained(runtime), await is_chained(runtime, "copy")
        with pytest.raises(InvalidInput, match="to: there is a session"):
            await runtime.fork(to="copy")
        with pytest.raises(NotFound, match="no entry"):
            await runtime.fork("copy", at=(await runtime.entries())[-1].id)

    assert (forked.parent, forked.unread) == (MAIN, 0)
    assert told == (
        ["one", "re: one", "left", "re: left"],
        ["one", "re: one", "right", "re: right"],
    )
    assert chained == (True, True)


async def test_nobody_forks_a_session_under_its_running_turn(lasting: SettingsFor):
    pause = Pause("slow")
    async with in_memory(Scripted([pause]), settings=lasting()) as runtime:
        await runtime.send("one")
        await pause.reached.wait()
        with pytest.raises(Underway, match="a turn is running"):
            await runtime.fork()
        pause.go_on.set()


async def test_a_conversation_before_a_reset_can_be_taken_up_again(lasting: SettingsFor):
    async with in_memory(Scripted(echo), settings=lasting()) as runtime:
        await say(runtime, "one")
        old = await runtime.entries()
        await runtime.reset()
        await say(runtime, "two")
        await runtime.fork(at=old[-1].id)
        await say(runtime, "three")
        now = await said(runtime)
        cards = await runtime.transcripts()
        past = await said(runtime, transcript=cards[1].tip.transcript_id)

    assert now == ["one", "re: one", "three", "re: three"]
    assert past == ["two", "re: two"]
    assert cards[1].ended_by == "fork"


async def test_pages_go_over_forks_in_both_directions(lasting: SettingsFor):
    async with in_memory(Scripted(echo), settings=lasting()) as runtime:
        for number in range(4):
            await say(runtime, f"{number}")
            leaf = (await runtime.entries())[-1].id
            await runtime.fork(at=leaf)
        whole = [entry.id for entry in await runtime.entries()]
        view = runtime.services.views.transcripts
        forward = [await view.page(MAIN, after=whole[at], limit=3) for at in range(8)]
        backward = [await view.page(MAIN, before=whole[at], limit=3) for at in range(8)]

    assert len(whole) == 8
    assert [[one.id for one in page] for page in forward] == [
        whole[at + 1 : at + 4] for at in range(8)
    ]
    assert [[one.id for one in page] for page in backward] == [
        whole[max(0, at - 3) : at] for at in range(8)
    ]


async def test_labels_and_what_was_seen_are_kept(lasting: SettingsFor):
    async with in_memory(Scripted(echo), settings=lasting()) as runtime:
        await say(runtime, "one")
        first, second = await runtime.entries()
        left = await runtime.see(entry_id=first.id)
        nothing = await runtime.see()
        for text in ("draft", "good"):
            await runtime.label("main", second.id, text)
        await runtime.label("main", first.id, "x")
        await runtime.label("main", first.id, "")
        labels = await runtime.services.views.transcripts.labels(MAIN)
        await say(runtime, "two")

    assert (left, nothing) == (1, 0)
    assert labels == {second.id: "good"}


async def test_unread_is_what_the_agent_said_to_people(lasting: SettingsFor):
    replies = ["hello", "NO_REPLY", "again"]
    async with in_memory(Scripted(replies), settings=lasting()) as runtime:
        sessions = runtime.services.views.sessions
        counts: list[int] = []
        for text in ("one", "/status", "two", "three"):
            await runtime.wait(await runtime.send(text))
            counts.append((await sessions.get(MAIN)).unread)
        said_first = (await runtime.entries())[1]
        counts.append(await runtime.see(entry_id=said_first.id))
        await runtime.fork(at=said_first.id)
        counts.append((await sessions.get(MAIN)).unread)
        counts.append(await runtime.see())

    assert counts == [1, 1, 1, 2, 1, 0, 0]


async def test_a_label_stays_where_a_fork_leaves_its_line_behind(lasting: SettingsFor):
    async with in_memory(Scripted(echo), settings=lasting()) as runtime:
        await say(runtime, "one")
        _, answer = await runtime.entries()
        await runtime.label("main", answer.id, "good")
        await say(runtime, "two")
        later = (await runtime.entries())[-1]
        await runtime.label("main", later.id, "later")
        await runtime.fork("main", at=answer.id)
        await runtime.fork("main", at=answer.id, to="copy")
        views = runtime.services.views.transcripts
        here, there = await views.labels(MAIN), await views.labels("agent:main:copy")
        await runtime.label("main", answer.id, "better")
        changed, kept = await views.labels(MAIN), await views.labels("agent:main:copy")

    assert here == there == {answer.id: "good"}
    assert changed == {answer.id: "better"}
    assert kept == {answer.id: "good"}


async def test_labels_leave_with_the_fork_that_took_over_what_they_label(lasting: SettingsFor):
    async with in_memory(Scripted(echo), settings=lasting()) as runtime:
        await say(runtime, "one")
        asked, answer = await runtime.entries()
        await runtime.label("main", asked.id, "gone by then")
        await say(runtime, "two")
        later = (await runtime.entries())[-1]
        await runtime.label("main", answer.id, "good")
        await runtime.label("main", later.id, "of what was left")
        await runtime.label("main", asked.id, "")
        await runtime.fork("main", at=answer.id, to="copy")
        await runtime.label("main", answer.id, "better")
        await say(runtime, "three", "copy")
        views = runtime.services.views.transcripts
        here = list((await views.labels("agent:main:copy")).values())
        file = [piece async for piece in runtime.export("copy")]
        await runtime.import_transcript(runtime.export("copy"), session="other")
        there = list((await views.labels("agent:main:other")).values())
        stands_at = (await said(runtime, "other"))[-2:]
        again = [piece async for piece in runtime.export("other")]

    assert here == there == ["good"]
    assert stands_at == ["re: three", "leaf"]
    assert b"".join(again) == b"".join(file)


async def test_what_a_fork_took_over_is_found_in_it_though_the_original_is_gone(
    lasting: SettingsFor,
):
    async with in_memory(Scripted(echo), settings=lasting()) as runtime:
        await say(runtime, "shared harbour")
        await runtime.fork(to="copy")
        await runtime.fork("copy", to="copy2")
        await say(runtime, "left harbour")
        view = SearchView(runtime.store)

        async def found(session: str | None = None) -> list[tuple[str, str]]:
            await Indexer(runtime.store, runtime.clock).find_behind()
            wanted = Wanted(session_key=session, role=Role.USER)
            hits = await view.page("harbour", wanted=wanted, limit=9)
            return sorted(
                (hit.session_key.split(":")[2], "".join(part.text for part in hit.snippet))
                for hit in hits
            )

        together = await found()
        apart = [await found(f"agent:main:{name}") for name in ("main", "copy", "copy2")]
        await runtime.delete("main")
        left = await found()
        await runtime.delete("copy")
        last = await found()

    assert together == [("main", "left harbour"), ("main", "shared harbour")]
    assert apart == [
        together,
        [("copy", "shared harbour")],
        [("copy2", "shared harbour")],
    ]
    assert left == [("copy", "shared harbour")]
    assert last == [("copy2", "shared harbour")]


async def test_of_very_many_labels_the_newest_count(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(transcripts, "MOST_LABELS", 3)
    async with in_memory(Scripted(echo)) as runtime:
        await say(runtime, "one")
        first, second = await runtime.entries()
        await runtime.label("main", first.id, "first")
        for number in range(3):
            await runtime.label("main", second.id, str(number))
        await runtime.fork("main")
        await runtime.label("main", second.id, "last")
        labels = await runtime.services.views.transcripts.labels(MAIN)

    assert labels == {second.id: "last"}


@pytest.mark.parametrize("is_running", [False, True])
async def test_a_deleted_session_is_gone_at_once_and_does_not_come_back(
    lasting: SettingsFor, is_running: bool
):
    pause = Pause("slow")
    lines = ["a", "b", *([pause] if is_running else []), "anew"]
    async with in_memory(Scripted(lines), settings=lasting()) as runtime:
        await say(runtime, "one")
        await runtime.reset()
        await say(runtime, "two")
        running = None
        if is_running:
            running = await runtime.send("running")
            await pause.reached.wait()
            await runtime.send("waits", mode="queue")
        deleted = await runtime.delete("main")
        pause.go_on.set()
        turn = None if running is None else await runtime.wait(running)
        counts = [
            (await runtime.store.read(f"SELECT COUNT(*) FROM {table}"))[0][0]
            for table in ("sessions", "entries", "past_transcripts", "discarded_transcripts")
        ]
        states = await runtime.store.read("SELECT state, state_reason FROM stimuli ORDER BY id")
        await say(runtime, "new")
        now = await said(runtime)
        with pytest.raises(NotFound):
            await runtime.delete("other")

    assert deleted.deleted
    assert counts == [1, 0, 0, 0]  # its Activity is the agent's
    assert now == ["new", "anew"]
    if is_running:
        assert turn is not None
        assert turn.state is TurnState.STOPPED
        assert [tuple(row) for row in states[2:]] == [("cancelled", "session-deleted")] * 2


async def test_what_a_fork_stands_on_outlives_the_session_it_left(lasting: SettingsFor):
    async with in_memory(Scripted(echo), settings=lasting()) as runtime:
        await say(runtime, "one")
        await runtime.fork(to="copy")
        await say(runtime, "left")
        await say(runtime, "right", "copy")
        await runtime.delete("main")
        left = await said(runtime, "copy")
        rows = await runtime.store.read("SELECT COUNT(*) FROM entries")
        await runtime.delete("copy")
        nothing = [
            (await runtime.store.read(f"SELECT COUNT(*) FROM {table}"))[0][0]
            for table in ("entries", "branches")
        ]

    assert left == ["one", "re: one", "right", "re: right"]
    assert rows[0][0] == 4
    assert nothing == [0, 0]


async def test_a_tool_that_runs_while_its_session_is_deleted_writes_nothing(
    lasting: SettingsFor,
):
    pause = Pause("")

    @tool(effect="effect")
    async def act() -> str:
        """Act."""
        pause.reached.set()
        await pause.go_on.wait()
        return "done"

    model = Scripted([says("", call("act")), "well"])
    async with in_memory(model, tools=[act], settings=lasting()) as runtime:
        await runtime.send("act")
        await pause.reached.wait()
        await runtime.delete("main")
        pause.go_on.set()
        await say(runtime, "again", "other")
        calls = await runtime.store.read("SELECT state FROM tool_calls")
        rows = await runtime.store.read("SELECT key FROM sessions WHERE key NOT LIKE '%:activity'")

    assert [row[0] for row in calls] == ["unknown"]
    assert [row[0] for row in rows] == ["agent:main:other"]


async def test_another_model_is_a_line_of_the_transcript(lasting: SettingsFor):
    async with in_memory(Scripted(["one", "two"]), settings=lasting()) as runtime:
        await say(runtime, "hello")
        await runtime.send("/model demo")
        await runtime.send("/model demo")
        await runtime.services.acts.choose(MAIN, Changes(model=None))
        lines = [
            (body.topic, body.text)
            for entry in await runtime.entries()
            if entry.kind is EntryKind.MODEL_CHANGE
            and isinstance(body := entry.content(), NoteBody)
        ]
        chained = await is_chained(runtime)

    assert lines == [("", "demo"), ("", "default")]
    assert chained


async def test_a_conversation_has_only_so_many_branches_and_shows_the_end_of_each(
    lasting: SettingsFor, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(forks, "MOST_BRANCHES", 4)
    monkeypatch.setattr(cards, "ENDS_AT_ONCE", 2)
    async with in_memory(Scripted(echo), settings=lasting()) as runtime:
        await say(runtime, "one")
        first = (await runtime.entries())[0]
        for number in range(3):
            await runtime.fork(at=first.id)
            await say(runtime, f"branch {number}")
        with pytest.raises(InvalidInput, match="4 branches"):
            await runtime.fork(at=first.id)
        await runtime.fork(at=first.id, to="copy")
        (card,) = await runtime.transcripts()

    assert [tip.leaf_depth for tip in card.branches] == [1, 2, 2, 2]
    assert all(tip.leaf_id is not None for tip in card.branches)


async def test_conversations_are_listed_by_page_and_each_of_their_paths_by_its_names(
    lasting: SettingsFor, monkeypatch: pytest.MonkeyPatch
):
    async with in_memory(Scripted(echo), settings=lasting()) as runtime:
        for number in range(5):
            await say(runtime, f"one of {number}")
            await say(runtime, f"two of {number}")
            await runtime.fork(at=(await runtime.entries())[1].id)
            await say(runtime, f"three of {number}")
            await runtime.reset()
        whole = await runtime.transcripts()
        pages: list[list[str]] = []
        after: str | None = None
        while page := await runtime.transcripts(after=after, limit=2):
            pages.append([card.tip.transcript_id for card in page])
            after = page[-1].place
        old = whole[2]
        root, fork = old.branches
        by_name = [
            (await said(runtime, transcript=name))[-2]
            for name in (old.tip.transcript_id, fork.branch, str(root.leaf_id), str(fork.leaf_id))
        ]
        entries = await runtime.entries(transcript=old.tip.transcript_id)
        with pytest.raises(NotFound):
            await said(runtime, transcript=entries[1].id)
        await runtime.fork(at=entries[0].id, to="copy")
        with pytest.raises(NotFound):
            await said(runtime, "copy", transcript=str(root.leaf_id))
        monkeypatch.setattr(cards, "MOST_BRANCHES", 2)
        few = await runtime.transcripts()

    assert [len(page) for page in pages] == [2, 2, 2]
    assert [one for page in pages for one in page] == [card.tip.transcript_id for card in whole]
    assert by_name == ["three of 3", "three of 3", "two of 3", "three of 3"]
    assert [card.has_more_branches for card in few] == [False, False, False, True, True, True]
    assert not any(card.has_more_branches for card in whole)
