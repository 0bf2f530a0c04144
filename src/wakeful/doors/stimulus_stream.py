"""The story of one stimulus, as records: from its receipt to the end of its turn."""

from collections import deque

from wakeful.access.principal import Principal
from wakeful.bus.bus import Subscription
from wakeful.doors import messaging
from wakeful.doors.messaging import Message
from wakeful.intake.bindings import Contact
from wakeful.services import Services, Views
from wakeful.turns.turns import Turn
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import TERMINAL, Receipt, Stimulus


class StoryDelta(Record):
    """Words of the answer, as they come."""

    text: str


class StoryRestart(Record):
    """The words so far count for nothing: another model begins anew."""

    model: str
    failure: str


class ModelWaits(Record):
    """The words so far count for nothing: the model is asked again later."""

    until: int | None
    error: str


class PutOff(Record):
    """Nobody works on it for now: it waits, though its receipt said otherwise."""

    state: str
    reason: str | None
    look_at: int | None  # when it is looked at again


class ToolPhase(Record):
    """A tool has begun or ended."""

    name: str
    phase: str


_PUT_OFF = frozenset({"stimulus.parked", "stimulus.held"})

# A receipt first; at the end the turn, or the stimulus if it ended without one.
StoryItem = Receipt | StoryDelta | StoryRestart | ModelWaits | PutOff | ToolPhase | Turn | Stimulus


async def send(
    services: Services, principal: Principal, to: str | Contact, message: Message
) -> "StimulusStream":
    """Say something, and follow what becomes of it; close what this returns."""
    spoken = await messaging.prepare(services, principal, to, message)
    # Followed before it is sent, so that not a word of the answer is missed.
    subscription = services.views.bus.follow(session_key=spoken.session_key)
    try:
        receipt = await messaging.file(services, spoken)
    except BaseException:
        await subscription.aclose()
        raise
    return StimulusStream(services.views, subscription, receipt)


class StimulusStream:
    """Tells what becomes of a stimulus, in batches or one by one, until its end."""

    def __init__(self, views: Views, subscription: Subscription, receipt: Receipt) -> None:
        self._views = views
        self._subscription = subscription
        self._receipt: Receipt | None = receipt  # until it was told
        self._id = receipt.duplicate_of or receipt.stimulus_id
        self._turn_id: str | None = None
        self._is_done = False
        self._taken: deque[StoryItem] = deque()

    def __aiter__(self) -> "StimulusStream":
        return self

    async def __anext__(self) -> StoryItem:
        while not self._taken:
            batch = await self.batch()
            if batch is None:
                raise StopAsyncIteration
            self._taken.extend(batch)
        return self._taken.popleft()

    async def batch(self) -> list[StoryItem] | None:
        """Wait for what comes next; nothing if somebody nudged instead, None after the end."""
        if self._is_done:
            return None
        if self._receipt is not None:
            items: list[StoryItem] = [self._receipt, *await self._look()]
            self._receipt = None
            return items
        items = []
        must_look = False
        for event in await self._subscription.batch():
            items += self._of(event)
            must_look = must_look or self._is_news(event)
        if must_look:
            items += await self._look()
        return items

    def nudge(self) -> None:
        """Let whoever waits for a batch look up."""
        self._subscription.nudge()

    async def aclose(self) -> None:
        await self._subscription.aclose()

    def _of(self, event: Event) -> list[StoryItem]:
        if event.kind == "stimulus.claimed" and event.stimulus_id == self._id:
            self._turn_id = event.turn_id
        data = event.data
        if event.kind in _PUT_OFF and event.stimulus_id == self._id:
            state = event.kind.removeprefix("stimulus.")
            return [PutOff(state=state, reason=data.get("reason"), look_at=data.get("look_at"))]
        if event.turn_id is None or event.turn_id != self._turn_id:
            return []
        match event.kind:
            case "turn.delta" if "restarted" in data:
                return [StoryRestart(model=data["restarted"], failure=data["failure"])]
            case "turn.delta":
                return [StoryDelta(text=data["text"])]
            case "turn.left" if data.get("error") is not None:
                return [ModelWaits(until=data["resume_at"], error=data["error"])]
            case "turn.tool":
                return [ToolPhase(name=data["name"], phase=data["phase"])]
            case _:
                return []

    def _is_news(self, event: Event) -> bool:
        """Tell whether the stimulus may have ended, or whether its end may have been missed."""
        if event.kind == "gap":
            return True
        return event.stimulus_id == self._id and event.kind.removeprefix("stimulus.") in TERMINAL

    async def _look(self) -> list[StoryItem]:
        """Tell the end if there is one; else remember which turn has the stimulus."""
        if not self._id:  # a command that filed nothing was answered by its receipt
            self._is_done = True
            return []
        stimulus = await self._views.ledger.get(self._id)
        if stimulus.state not in TERMINAL:
            self._turn_id = stimulus.turn_id
            return []
        self._is_done = True
        if stimulus.turn_id is None:
            return [stimulus]
        return [await self._views.turns.turn(stimulus.turn_id)]
