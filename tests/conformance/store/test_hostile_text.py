"""Whatever text arrives is stored as it is or refused by name; it harms nobody else."""

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conformance.store.tables import ADD_NOTES, INSERT_NOTE, add_note, together
from wakeful.store.database import Store, Tx, Verb
from wakeful.vocabulary.errors import InvalidInput

HOSTILE = st.text(
    st.characters() | st.sampled_from("\0\ud800\udfff\uffff\U0010ffff'\"\\:%$\n\r\x1b\u202e")
)
BIG = "ä\n'\\" * 2_500_000  # 10 MB and more once encoded

many_examples = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def replace_note(tx: Tx, body: str) -> str:
    tx.run("DELETE FROM notes")
    tx.run(INSERT_NOTE, id="x", value=0, body=body)
    found = tx.one("SELECT body FROM notes WHERE body = :body", body=body)
    assert found is not None
    return found[0]


@many_examples
@given(body=HOSTILE)
async def test_text_comes_back_as_it_was_or_is_refused_by_name(store: Store, body: str) -> None:
    """T18: whatever is said is data, in every statement."""
    stored, neighbour = await together(
        store,
        store.transact(lambda tx: replace_note(tx, body)),
        store.transact(lambda tx: tx.one("SELECT 'fine'")),
    )

    assert neighbour == ("fine",)
    if isinstance(stored, InvalidInput):
        assert stored.field == "body"
        assert "\0" in body or any("\ud800" <= letter <= "\udfff" for letter in body)
    else:
        assert stored == body


@many_examples
@given(name=HOSTILE)
async def test_hostile_rows_of_a_verb_harm_no_other_row(store: Store, name: str) -> None:
    await store.transact(lambda tx: tx.run("DELETE FROM notes"))

    hostile, good = await together(
        store, store.batch(ADD_NOTES, "!" + name), store.batch(ADD_NOTES, "good")
    )

    assert good == "did good"
    if isinstance(hostile, InvalidInput):
        assert hostile.field == "id"
    else:
        assert hostile == f"did !{name}"


@many_examples
@given(names=st.lists(HOSTILE))
async def test_hostile_lists_are_answered_or_refused_by_name(
    store: Store, names: list[str]
) -> None:
    try:
        found = await store.read("SELECT id FROM notes WHERE id IN :names", names=names)
    except InvalidInput as error:
        assert error.field == "names"
    else:
        assert found == []


@many_examples
@given(body=HOSTILE)
async def test_hostile_parameters_of_reads_are_answered_or_refused(store: Store, body: str) -> None:
    try:
        rows = await store.read("SELECT CAST(:body AS TEXT)", body=body)
    except InvalidInput as error:
        assert error.field == "body"
    else:
        assert rows == [(body,)]


async def test_a_text_of_ten_megabytes_comes_back(store: Store) -> None:
    await store.transact(lambda tx: add_note(tx, "big", body=BIG))

    assert await store.read("SELECT body FROM notes") == [(BIG,)]
    assert await store.transact(lambda tx: tx.one("SELECT body FROM notes")) == (BIG,)
    assert await store.read("SELECT id FROM notes WHERE body IN :all", all=[BIG]) == [("big",)]


async def test_ten_megabytes_in_one_row_of_a_verb_harm_no_other_row(store: Store) -> None:
    def run(tx: Tx, bodies: Sequence[str]) -> Sequence[int]:
        rows = [{"id": str(n), "value": 0, "body": body} for n, body in enumerate(bodies)]
        tx.many(INSERT_NOTE, rows)
        return [len(body) for body in bodies]

    verb = Verb("bodies", run)
    sizes = await together(store, store.batch(verb, "small"), store.batch(verb, BIG))

    assert sizes == [5, len(BIG)]


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**40])
async def test_a_number_of_more_than_64_bits_is_refused_by_name(store: Store, number: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        await store.transact(lambda tx: add_note(tx, "a", value=number))

    assert caught.value.field == "value"
