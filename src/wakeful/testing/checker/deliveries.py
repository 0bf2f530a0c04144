"""I11 delivery."""

from wakeful.outbox.outbox import Delivery, DeliveryState
from wakeful.testing.checker.finding import InvariantFinding
from wakeful.testing.checker.history import History, grouped
from wakeful.testing.ledger import Line
from wakeful.turns.turns import TurnState

_OPEN = (DeliveryState.QUEUED, DeliveryState.SENT)
_SILENT = "NO_REPLY"


def delivered_in_order(history: History, finding: InvariantFinding) -> None:
    """I11: whatever is due goes out at least once, with one id, in order, and is noted once."""
    received = [line for line in history.ledgers.receiver if line["what"] == "received"]
    by_delivery = grouped(received, lambda line: str(line["delivery"]))
    for delivery in history.db.deliveries.values():
        lines = by_delivery[delivery.sent_with or delivery.id]
        _check_delivery(history, delivery, lines, finding)
    for delivery_id, lines in by_delivery.items():
        finding.expect(
            not lines or delivery_id in history.db.deliveries,
            f"{delivery_id} was received and is not in the outbox",
            [str(line) for line in lines],
        )
    _check_order(history, received, finding)
    _check_due(history, finding)


def _check_delivery(
    history: History, delivery: Delivery, lines: list[Line], finding: InvariantFinding
) -> None:
    story = history.story(delivery.turn_id)
    finding.expect(
        delivery.state not in _OPEN, f"{delivery.id} is {delivery.state.value} at rest", story
    )
    if delivery.state is DeliveryState.ACKNOWLEDGED:
        finding.expect(bool(lines), f"{delivery.id} is acknowledged, and nobody received it", story)
    finding.expect(
        all(_has_text(line["text"], delivery) for line in lines),
        f"{delivery.id} was received with another text",
        story,
    )


def _has_text(received: str, delivery: Delivery) -> bool:
    """Tell whether a text was received, as it was filed or within its digest."""
    if delivery.sent_with is None:
        return received == delivery.whole_text
    return delivery.whole_text in received


def _check_order(history: History, received: list[Line], finding: InvariantFinding) -> None:
    """First receipts come in the order of filing, target by target."""
    for target, lines in grouped(received, lambda line: str(line["target"])).items():
        first = list(dict.fromkeys(line["delivery"] for line in lines))
        finding.expect(
            first == sorted(first),
            f"deliveries to {target!r} came out of order",
            [str(line) for line in lines[-20:]],
        )


def _check_due(history: History, finding: InvariantFinding) -> None:
    """Every reply that has somewhere to go was filed."""
    filed = grouped(history.db.deliveries.values(), lambda delivery: delivery.turn_id)
    for turn in history.db.turns.values():
        if turn.state is not TurnState.DONE or turn.route is None or not turn.route.is_sent_to:
            continue
        if turn.reply is None or turn.reply == _SILENT:
            continue
        texts = [delivery.text for delivery in filed[turn.id]]
        finding.expect(
            texts.count(turn.reply) == 1,
            f"the reply of {turn.id} was filed {texts.count(turn.reply)} times",
            history.story(turn.id),
        )
