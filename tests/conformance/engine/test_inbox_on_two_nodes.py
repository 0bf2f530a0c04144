"""Two nodes share one inbox: its keys, its limits and its items, each of which one turn reads."""

import asyncio
from collections import Counter

import pytest

from tests.conformance.engine.test_two_nodes import Node, nodes
from wakeful.broker import held, lane_rows
from wakeful.store.database import Tx
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.stimulus import Outcome, Priority, State, Trust, WaitingCaps

__all__ = ["nodes"]

ACTIVITY = "agent:main:activity"
ROUNDS = 200
ITEM = {"kind": Kind.INBOX, "trust": Trust.EXTERNAL, "source": "s", "priority": Priority.NEXT}


async def test_a_key_that_races_on_both_nodes_is_one_item(nodes: tuple[Node, Node]):
    for number in range(ROUNDS):
        receipts = await asyncio.gather(
            *(
                node.accept("x", ACTIVITY, **ITEM, dedup_key=f"k{number}", dedup_window_s=300)
                for node in nodes
                for _ in range(4)
            )
        )
        assert [one.outcome for one in receipts].count(Outcome.DUPLICATE) == 7

    rows = await nodes[0].store.read("SELECT COUNT(*) FROM stimuli")
    told = await nodes[0].store.read("SELECT COUNT(*) FROM events WHERE kind = 'inbox.item'")
    assert rows[0][0] == told[0][0] == ROUNDS


async def test_no_more_items_wait_than_may_whichever_node_takes_them(nodes: tuple[Node, Node]):
    caps = WaitingCaps(of_source=15, in_all=20)
    receipts = await asyncio.gather(
        *(
            node.accept(f"{n}", ACTIVITY, **{**ITEM, "source": source}, caps=caps)
            for n in range(12)
            for node in nodes
            for source in ("s", "t")
        )
    )

    outcomes = Counter(one.outcome for one in receipts)
    rows = await nodes[0].store.read("SELECT source, COUNT(*) FROM stimuli GROUP BY source")
    counted = await nodes[0].store.read("SELECT source, waiting FROM inbox_counts")
    counts = {row[0]: row[1] for row in counted}
    assert outcomes == {Outcome.HELD: 20, Outcome.REFUSED: 28}
    assert max(row[1] for row in rows) <= 15
    assert counts == {"": 20, **{f"inbox:{row[0]}": row[1] for row in rows}}


@pytest.mark.timeout(60)  # 200 rounds of four commits each, on two stores
async def test_what_both_read_at_once_each_of_them_has_a_part_of(nodes: tuple[Node, Node]):
    def read(node: Node, turn_id: str):
        def write(tx: Tx) -> list[str]:
            found = held.give(tx, ACTIVITY, turn_id, 3, 10_000)
            ids = [one.id for one in found]
            node.deps.settlement.settle(tx, ids, State.MERGED)
            return ids

        return node.store.transact(write, locks=[lane_rows.lock(ACTIVITY)])

    given: list[str] = []
    for number in range(ROUNDS):
        await asyncio.gather(*(nodes[n % 2].accept(f"{n}", ACTIVITY, **ITEM) for n in range(6)))
        first, second, _ = await asyncio.gather(
            read(nodes[0], f"tn_{number}"),
            read(nodes[1], f"tn_{number}"),
            nodes[number % 2].accept("more", ACTIVITY, **ITEM),
        )
        given += first + second
    while rest := await read(nodes[0], "tn_last"):
        given += rest

    rows = await nodes[0].store.read("SELECT id FROM stimuli WHERE state = 'merged'")
    assert len(given) == len(set(given)) == ROUNDS * 7
    assert {row[0] for row in rows} == set(given)
