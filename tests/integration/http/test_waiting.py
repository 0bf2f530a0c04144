"""Who watches a message sees that its model is waited for, or that another one answers."""

from datetime import datetime

from tests.integration.http.serving import Frame, frames, house
from wakeful.models.fallback import Fallback
from wakeful.models.model import Model
from wakeful.models.scripted import Scripted
from wakeful.vocabulary.clock import SystemClock
from wakeful.vocabulary.errors import Transient

BUSY = Transient("the model is busy", retry_after_s=0.01)


async def watched(model: Model) -> list[Frame]:
    """Send a message and return what its stream told between the receipt and the turn."""
    async with (
        house(model) as home,
        home.client(home.operator) as client,
        client.stream("POST", "/api/sessions/main/stream", json={"text": "hello"}) as response,
    ):
        told = [frame async for frame in frames(response) if isinstance(frame, Frame)]
    return told[1:-1]


async def test_a_model_that_is_waited_for_is_told_with_the_time_and_the_reason():
    waiting, answer = await watched(Scripted([BUSY, "here I am"]))

    assert waiting.kind == "waiting"
    assert waiting.data["error"] == "the model is busy"
    assert datetime.fromisoformat(waiting.data["until"]).tzinfo is not None
    assert (answer.kind, answer.data) == ("delta", {"text": "here I am"})


async def test_another_model_that_answers_is_told_with_the_reason():
    restart, answer = await watched(
        Fallback([Scripted([BUSY]), Scripted(["me instead"])], SystemClock())
    )

    assert restart.kind == "restart"
    assert restart.data == {"model": "scripted", "failure": "the model is busy"}
    assert (answer.kind, answer.data) == ("delta", {"text": "me instead"})


async def test_an_agent_is_shown_with_its_voice():
    async with house() as home, home.client(home.operator) as client:
        agent = (await client.get("/api/agents/main")).json()

    assert agent["fallback_models"] == []
    assert agent["thinking"] is None
    assert agent["limits"]["first_token_s"] == 300
