"""Which models are closed, and when."""

from wakeful.models.scripted import Scripted
from wakeful.tools.toolbox import Toolbox
from wakeful.turn.agent import Agent, ReadyAgent
from wakeful.turn.ready_agents import ReadyAgents


class Closing(Scripted):
    """A model that counts how often it was closed."""

    def __init__(self) -> None:
        super().__init__([])
        self.closed = 0

    async def aclose(self) -> None:
        self.closed += 1


def minds_of(*models: Closing, given: bool = False) -> dict[str, ReadyAgent]:
    named = [
        Agent(f"a{number}", model=model if given else "demo") for number, model in enumerate(models)
    ]
    return {
        agent.id: ReadyAgent(agent, model, Toolbox(()))
        for agent, model in zip(named, models, strict=True)
    }


def no_voice(_name: str, _limits: object) -> Closing:
    raise AssertionError


async def test_models_that_were_left_are_closed_once_early_or_at_the_end():
    first, second, third = Closing(), Closing(), Closing()
    agents = ReadyAgents(minds_of(first), no_voice)
    left_first = agents.follow(minds_of(second))
    agents.follow(minds_of(third))
    await agents.close(left_first)
    by_then = (first.closed, second.closed, third.closed)
    await agents.aclose()

    assert left_first == [first]
    assert by_then == (1, 0, 0)
    assert (first.closed, second.closed, third.closed) == (1, 1, 1)


async def test_a_model_that_was_given_stays_open_for_whoever_else_has_it():
    model = Closing()
    agents = ReadyAgents(minds_of(model, given=True), no_voice)
    left = agents.follow(minds_of(model, given=True))
    by_then = model.closed
    await agents.aclose()

    assert left == []
    assert (by_then, model.closed) == (0, 1)
