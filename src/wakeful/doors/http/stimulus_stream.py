"""The story of one stimulus, from its receipt to the end of its turn."""

from wakeful.bus.bus import Subscription
from wakeful.doors.http.rooms import Rooms
from wakeful.doors.http.shapes import Answered, ReceiptShape, time_or_none, turn_end
from wakeful.doors.http.sse import frame
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.stimulus import TERMINAL, Receipt


class StimulusSource:
    """Tells `receipt`, then `delta` and `tool` of its turn, then `turn`.

    `waiting` and `restart` say that the words so far count for nothing: the model is asked again
    later, or another one begins anew.
    A stimulus that ends without a turn is told as `stimulus` instead.
    """

    def __init__(
        self,
        rooms: Rooms,
        subscription: Subscription,
        receipt: Receipt,
        told: ReceiptShape | Answered,
    ) -> None:
        self._rooms = rooms
        self._subscription = subscription
        self._id = receipt.duplicate_of or receipt.stimulus_id
        self._receipt: ReceiptShape | Answered | None = told
        self._turn_id: str | None = None
        self._is_done = False

    async def next(self) -> bytes | None:
        if self._is_done:
            return None
        if self._receipt is not None:
            first = frame("receipt", self._receipt)
            self._receipt = None
            return first + await self._look()
        told: list[bytes] = []
        must_look = False
        for event in await self._subscription.batch():
            told += self._tell(event)
            must_look = must_look or self._is_news(event)
        if must_look:
            told.append(await self._look())
        return b"".join(told)

    def nudge(self) -> None:
        self._subscription.nudge()

    async def close(self) -> None:
        await self._subscription.aclose()

    def _tell(self, event: Event) -> list[bytes]:
        if event.kind == "stimulus.claimed" and event.stimulus_id == self._id:
            self._turn_id = event.turn_id
        if event.turn_id is None or event.turn_id != self._turn_id:
            return []
        if event.kind == "turn.delta" and "restarted" in event.data:
            data = event.data
            return [frame("restart", {"model": data["restarted"], "failure": data["failure"]})]
        if event.kind == "turn.delta":
            return [frame("delta", {"text": event.data["text"]})]
        if event.kind == "turn.left" and event.data.get("error") is not None:
            until = time_or_none(event.data["resume_at"])
            return [frame("waiting", {"until": until, "error": event.data["error"]})]
        if event.kind == "turn.tool":
            return [frame("tool", {"name": event.data["name"], "phase": event.data["phase"]})]
        return []

    def _is_news(self, event: Event) -> bool:
        """Tell whether the stimulus may have ended, or whether its end may have been missed."""
        if event.kind == "gap":
            return True
        return event.stimulus_id == self._id and event.kind.removeprefix("stimulus.") in TERMINAL

    async def _look(self) -> bytes:
        """Tell the end if there is one; else remember which turn has the stimulus."""
        stimulus = await self._rooms.ledger.get(self._id)
        if stimulus.state not in TERMINAL:
            self._turn_id = stimulus.turn_id
            return b""
        self._is_done = True
        if stimulus.turn_id is None:
            end = {"id": self._id, "state": stimulus.state, "reason": stimulus.state_reason}
            return frame("stimulus", end)
        return frame("turn", turn_end(await self._rooms.turns.turn(stimulus.turn_id)))
