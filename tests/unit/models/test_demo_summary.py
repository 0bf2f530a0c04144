"""The demo model compacts conversations as the template of compaction asks."""

from wakeful.models.demo import summed_up
from wakeful.prompts import compaction as template
from wakeful.vocabulary.message import UserMessage


def asked(*texts: str, previous: str | None = None) -> str:
    compacted = [UserMessage(text=text) for text in texts]
    return template.question(
        compacted, compacted[:1], previous=previous, wish="", longest=5_000, most=50_000
    )


def test_a_summary_passes_the_check_and_keeps_what_people_said():
    question = asked("the parcel comes on Friday", "and the number is 42", "filler " * 300)

    summary = summed_up(question)

    fault = template.fault(summary, is_split=True, input_size=len(question), most=16_000)
    assert fault is None
    assert "the parcel comes on Friday" in summary
    assert "42" in summary


def test_what_the_summary_before_kept_is_kept_on():
    first = summed_up(asked("the parcel comes on Friday"))

    second = summed_up(asked("something else", previous=first))

    assert "the parcel comes on Friday" in second
    assert "something else" in second
