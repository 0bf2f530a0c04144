"""What a message tells the stand-in model."""

from tests.proofs.plans import LAST_WORD, Planned, Step, marked, situation
from wakeful.testing.checker.marks import marks_in
from wakeful.vocabulary.message import (
    AssistantMessage,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)

LOOK = AssistantMessage(content=(ToolCall(id="c1", name="look", arguments={}),))
SEEN = ToolMessage(call_id="c1", name="look", text="seen")
ANSWER = AssistantMessage(content=(Text(text="an answer"),))


def test_a_mark_is_found_in_its_text() -> None:
    assert marks_in(marked("m1", "look,act.die")) == ("m1",)
    assert marks_in(marked("m2")) == ("m2",)


def test_a_step_has_manners_and_calls() -> None:
    found = situation([UserMessage(text=marked("m1", "slow+look&act.die"))])

    assert found.marks == ("m1",)
    assert found.step == Step(
        manners=("slow",), calls=(Planned(tool="look"), Planned(tool="act", how="die"))
    )


def test_each_reply_takes_one_step() -> None:
    messages: list[Message] = [UserMessage(text=marked("m1", "look,act")), LOOK, SEEN]

    assert situation(messages).step.calls == (Planned(tool="act"),)


def test_whoever_joins_adds_its_steps_at_the_end() -> None:
    joined = UserMessage(text=marked("m2", "put"))

    found = situation([UserMessage(text=marked("m1", "look")), LOOK, SEEN, joined])

    assert found.marks == ("m1", "m2")
    assert found.step.calls == (Planned(tool="put"),)


def test_a_final_reply_ends_all_plans_before_it() -> None:
    found = situation([UserMessage(text=marked("m1", "look,act")), ANSWER])

    assert found.marks == ()
    assert found.step == LAST_WORD
