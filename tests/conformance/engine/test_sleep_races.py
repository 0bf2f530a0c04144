"""A message in the moment of the closing commit, on two nodes: nobody sleeps through it."""

import asyncio

import msgspec
import pytest

from tests.conformance.engine.test_two_nodes import Node, nodes
from wakeful.broker import lane_rows
from wakeful.broker.settlement import Settlement
from wakeful.lanes.opening import Opened
from wakeful.store.database import Tx
from wakeful.triggers.sleeping import Sleeping
from wakeful.turn import next_step
from wakeful.turn.attempt import StepResult
from wakeful.turn.commit import commit_step
from wakeful.turn.ending import Ending
from wakeful.turns import turns
from wakeful.vocabulary.message import AssistantMessage, Text
from wakeful.vocabulary.proactive import SleepIntent

__all__ = ["nodes"]

ROUNDS = 200
AT_ONCE = 25


def sleepy(node: Node) -> Node:
    """Let turns of a node fall asleep at their end."""
    sleeping = Sleeping(node.bus, node.intake.keep_in, lambda _tx, _sleep: None)
    budgets = node.deps.gate.budgets
    ending = Ending(node.bus, node.ids, Settlement(node.bus), budgets, (sleeping.on_ended,))
    node.deps = msgspec.structs.replace(node.deps, ending=ending)
    return node


def wish(tx: Tx, opened: Opened, number: int) -> None:
    intent = SleepIntent(
        id=f"sl_{number}",
        reason="rest",
        requested_ms=60_000,
        final_ms=60_000,
        made_at=tx.now,
        wake_at=tx.now + 60_000,
    )
    turns.intend_sleep(tx, opened.attempt.turn, intent)


async def close(node: Node, opened: Opened, key: str) -> None:
    news = StepResult(reply=AssistantMessage(content=(Text(text="good night"),)))
    await node.store.transact(
        lambda tx: commit_step(
            node.deps, tx, opened.attempt, lambda commit: next_step.advance(commit, news)
        ),
        locks=[lane_rows.lock(key)],
    )


async def race(first: Node, second: Node, number: int) -> bool:
    """Let a turn fall asleep while somebody speaks; tell whether the message is answered."""
    key = f"agent:main:dm:{number}"
    await first.accept("rest", key)
    opened = await first.claim(key)
    assert opened is not None
    await first.store.transact(lambda tx: wish(tx, opened, number))

    both = [close(first, opened, key), second.accept("wake up", key)]
    await asyncio.gather(*(both if number % 2 else reversed(both)))

    return await second.claim(key) is not None


@pytest.mark.timeout(90)  # 200 rounds
async def test_a_message_around_the_closing_commit_is_answered_and_nobody_sleeps(
    nodes: tuple[Node, Node],
):
    first, second = map(sleepy, nodes)

    answered: list[bool] = []
    for begin in range(0, ROUNDS, AT_ONCE):
        numbers = range(begin, begin + AT_ONCE)
        answered += await asyncio.gather(*(race(first, second, n) for n in numbers))

    asleep = await first.store.read("SELECT owner FROM sleeps")
    woken = await first.store.read("SELECT data FROM events WHERE kind = 'sleep.woken'")
    assert all(answered)
    assert len(answered) == ROUNDS
    assert asleep == []
    assert [msgspec.json.decode(row[0])["reason"] for row in woken] == ["interrupted"] * ROUNDS
