"""The stand-ins refuse what the real providers refuse (I8), and take what they take."""

from collections.abc import Callable
from typing import Any

import pytest

from wakeful.testing.providers.anthropic import Anthropic
from wakeful.testing.providers.openai_chat import OpenAIChatStandIn
from wakeful.testing.providers.openai_responses import OpenAIResponsesStandIn
from wakeful.testing.providers.plan import Step, mark_in, step_of
from wakeful.testing.providers.wire import StandInWire

Body = dict[str, Any]
Story = list[str]  # "say", "call:a,b", "result:a"


def anthropic(story: Story) -> Body:
    messages: list[Body] = []
    blocks: list[Body]
    for what, ids in map(_parsed, story):
        match what:
            case "call":
                blocks = [{"type": "tool_use", "id": one, "name": "n", "input": {}} for one in ids]
                messages.append({"role": "assistant", "content": blocks})
            case "result":
                blocks = [{"type": "tool_result", "tool_use_id": one} for one in ids]
                messages.append({"role": "user", "content": blocks})
            case _:
                messages.append({"role": "user", "content": "hello {mark}"})
    return {"messages": messages}


def chat(story: Story) -> Body:
    messages: list[Body] = []
    for what, ids in map(_parsed, story):
        match what:
            case "call":
                messages.append({"role": "assistant", "tool_calls": [{"id": one} for one in ids]})
            case "result":
                messages += [{"role": "tool", "tool_call_id": one} for one in ids]
            case _:
                messages.append({"role": "user", "content": [{"text": "hello {mark}"}]})
    return {"messages": messages}


def responses(story: Story) -> Body:
    items: list[Body] = []
    for what, ids in map(_parsed, story):
        match what:
            case "call":
                items.append({"type": "reasoning"})
                items += [{"type": "function_call", "call_id": one} for one in ids]
            case "result":
                items += [{"type": "function_call_output", "call_id": one} for one in ids]
            case _:
                items.append({"role": "user", "content": "hello {mark}"})
    return {"input": items}


def _parsed(event: str) -> tuple[str, list[str]]:
    what, _, ids = event.partition(":")
    return what, ids.split(",")


WIRES: list[tuple[StandInWire, Callable[[Story], Body]]] = [
    (Anthropic(), anthropic),
    (OpenAIChatStandIn(), chat),
    (OpenAIResponsesStandIn(), responses),
]


@pytest.mark.parametrize(("wire", "told"), WIRES)
@pytest.mark.parametrize(
    "story",
    [
        ["say"],
        ["say", "call:a", "result:a"],
        ["say", "call:a,b", "result:a,b", "say"],
        ["say", "call:a,b", "result:b,a", "call:c", "result:c", "say"],
    ],
)
def test_a_story_that_is_whole_is_taken(
    wire: StandInWire, told: Callable[[Story], Body], story: Story
):
    question = wire.read(told(story))

    assert question.problem is None
    assert mark_in(question.said) == "mark"


@pytest.mark.parametrize(("wire", "told"), WIRES)
@pytest.mark.parametrize(
    "story",
    [
        ["say", "call:a"],
        ["say", "call:a", "say"],
        ["say", "call:a,b", "result:a", "say"],
        ["say", "call:a,b", "result:a"],
        ["say", "call:a", "say", "result:a"],
        ["say", "result:a"],
        ["say", "call:a", "result:b"],
        ["say", "call:a", "result:a", "result:a"],
        ["say", "call:a,b", "result:a", "call:c", "result:c"],
    ],
)
def test_a_call_without_its_result_right_after_it_is_refused(
    wire: StandInWire, told: Callable[[Story], Body], story: Story
):
    assert wire.read(told(story)).problem is not None


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": ""}],
        [{"role": "user", "content": []}],
        [{"role": "assistant", "content": "hello"}],
        [],
    ],
)
def test_anthropic_wants_something_said_and_a_user_first(messages: list[Body]):
    assert Anthropic().read({"messages": messages}).problem is not None


def test_a_plan_has_a_step_for_each_time_and_repeats_its_last():
    one, two = Step(text="one"), Step(text="two")

    told = [step_of({"m": (one, two)}, "m", time) for time in range(3)]

    assert told == [one, two, two]
    assert step_of({}, "m", 0) == Step()
