"""Views show an owner what it made, and the operator everything."""

import weakref
from contextlib import suppress

import pytest

from wakeful.models.scripted import call, says
from wakeful.runtime import Runtime
from wakeful.testing.kit import in_memory
from wakeful.views import why as why_view
from wakeful.views.approvals import ApprovalView
from wakeful.views.ledger import Filter, LedgerView
from wakeful.views.sessions import SessionView, place
from wakeful.views.why import WhyView
from wakeful.vocabulary.errors import InvalidInput, NotFound
from wakeful.vocabulary.kinds import Kind, Origin
from wakeful.vocabulary.stimulus import Draft, State, Trust


async def said(runtime: Runtime, owner: str, key: str, **more: object) -> str:
    """Have somebody say something, and return the id of the turn that answered."""
    draft = Draft(
        session_key=f"agent:main:{key}",
        trust=Trust.OPERATOR,
        text="hello",
        owner=owner,
        **more,  # pyright: ignore[reportArgumentType]
    )
    turn = await runtime.wait(await runtime.accept(draft))
    assert turn is not None
    return turn.id


async def test_lists_hold_only_what_the_owner_made():
    async with in_memory(["a", "b", "c"]) as runtime:
        for owner, key in (("tk_a", "web:a"), ("tk_b", "web:b"), ("operator", "main")):
            await said(runtime, owner, key)
        ledger, sessions = LedgerView(runtime.store), SessionView(runtime.store)

        mine = await ledger.page("tk_a", Filter(), None, 10)
        assert [one.session_key for one in mine] == ["agent:main:web:a"]
        assert len(await ledger.page("operator", Filter(), None, 10)) == 3
        wanted = Filter(state=State.DONE, origin=Origin.USER, session_key="agent:main:web:b")
        assert await ledger.page("tk_a", wanted, None, 10) == []
        assert len(await ledger.page("tk_b", wanted, None, 10)) == 1
        assert [one.key for one in await sessions.page("tk_b", None, 10)] == ["agent:main:web:b"]
        every = await sessions.page("operator", None, 10)
        assert len(every) == 4  # with the one that every agent has
        assert len(await sessions.page("operator", place(every[0]), 10)) == 3
        with pytest.raises(InvalidInput):
            await sessions.page("operator", "x.y", 10)


async def test_what_another_owner_made_is_not_found():
    async with in_memory(["a"]) as runtime:
        turn_id = await said(runtime, "tk_a", "web:a")
        ledger, sessions = LedgerView(runtime.store), SessionView(runtime.store)
        (stimulus,) = await ledger.page("tk_a", Filter(), None, 10)

        for look in (
            ledger.get(stimulus.id, "tk_b"),
            sessions.get("agent:main:web:a", "tk_b"),
            WhyView(runtime.store, sessions, ApprovalView(runtime.store)).chain(turn_id, "tk_b"),
        ):
            with pytest.raises(NotFound):
                await look
        assert (await ledger.get(stimulus.id, "tk_a")).id == stimulus.id
        assert await sessions.owner_of("agent:main:nobody") is None


async def test_why_walks_from_cause_to_cause_and_stops_at_the_border_of_an_owner():
    script = [says("", call("current_time")), "first", "second", "third"]
    async with in_memory(script) as runtime:
        first = await said(runtime, "operator", "main")
        second = await said(runtime, "operator", "api:b", cause_id=first, depth=1, kind=Kind.A2A)
        third = await said(runtime, "tk_a", "web:a", cause_id=second, depth=2, kind=Kind.A2A)
        why = WhyView(runtime.store, SessionView(runtime.store), ApprovalView(runtime.store))

        chain = await why.chain(third)
        assert [link.turn.id for link in chain] == [third, second, first]
        assert [call.name for call in chain[-1].tools] == ["current_time"]
        assert len(chain[-1].asks) == 2
        assert [link.turn.id for link in await why.chain(third, "tk_a")] == [third]


async def test_why_holds_no_more_than_a_page_and_says_where_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(why_view, "PAGE_BYTES", 700)
    async with in_memory(["first", "second", "third"]) as runtime:
        first = await said(runtime, "operator", "main")
        second = await said(runtime, "tk_a", "web:b", cause_id=first, depth=1, kind=Kind.A2A)
        third = await said(runtime, "tk_a", "web:a", cause_id=second, depth=2, kind=Kind.A2A)
        why = WhyView(runtime.store, SessionView(runtime.store), ApprovalView(runtime.store))

        page = await why.chain(third)
        assert [link.turn.id for link in page] == [third, second]
        assert [link.goes_on_at for link in page] == [None, first]
        (rest,) = await why.chain(first)
        assert (rest.turn.id, rest.goes_on_at) == (first, None)
        assert (await why.chain(third, "tk_a"))[-1].goes_on_at is None


async def test_why_shows_as_many_causes_of_one_turn_as_fit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(why_view, "PAGE_BYTES", 12)
    async with in_memory(["first", "second", "third"]) as runtime:
        first = await said(runtime, "operator", "main")
        second = await said(runtime, "operator", "api:b")
        third = await said(runtime, "operator", "web:a", cause_id=second, depth=1, kind=Kind.A2A)
        together = "UPDATE stimuli SET turn_id = :third, text = :text WHERE turn_id = :first"
        text = "more than fits beside another"
        await runtime.store.transact(
            lambda tx: tx.run(together, third=third, first=first, text=text)
        )

        (link,) = await WhyView(
            runtime.store, SessionView(runtime.store), ApprovalView(runtime.store)
        ).chain(third)

    assert [one.text for one in link.stimuli] == [text]
    assert link.more_stimuli == 1
    assert link.goes_on_at == second


class DeletedMeanwhile:
    """The store of a runtime where a session is deleted right after it was looked at."""

    def __init__(self, runtime: Runtime, session: str) -> None:
        self._runtime = runtime
        self._session = session
        self.listen = runtime.store.listen

    async def read(self, sql: str, **params: object) -> object:
        rows = await self._runtime.store.read(sql, **params)
        with suppress(NotFound):
            await self._runtime.delete(self._session)
        return rows


async def test_an_owner_is_not_remembered_for_a_session_that_went_while_it_was_looked_up():
    async with in_memory(["a", "b"]) as runtime:
        await said(runtime, "tk_a", "web:a")
        store = DeletedMeanwhile(runtime, "web:a")
        sessions = SessionView(store)  # pyright: ignore[reportArgumentType] (what it asks of one)
        first = await sessions.owner_of("agent:main:web:a")
        await said(runtime, "operator", "web:a")

        assert first == "tk_a"
        assert await sessions.owner_of("agent:main:web:a") == "operator"


async def test_nothing_holds_on_to_a_view_that_somebody_looked_through_once():
    async with in_memory(["a"]) as runtime:
        await said(runtime, "operator", "main")
        view = SessionView(runtime.store)
        await view.get("agent:main:main")
        kept = weakref.ref(view)
        del view

        assert kept() is None
