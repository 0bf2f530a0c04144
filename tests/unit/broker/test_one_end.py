"""One settlement and one ending: nothing else writes how a stimulus or a turn came to its end."""

import re

from tests.sources import SOURCE, texts

_ENDS_STIMULI = re.compile(r"UPDATE stimuli SET state = (?:'(\w+)'|:\w+|CASE)")
_UNFINISHED = {"pending", "held", "parked", "claimed"}


def places(pattern: re.Pattern[str], *, but: set[str]) -> list[str]:
    return [
        f"{name}: {match[0]}"
        for name, text in texts(SOURCE).items()
        if name not in but
        for match in pattern.finditer(text)
    ]


def test_only_the_settlement_writes_the_end_of_a_stimulus():
    found = [
        f"{name}: {match[0]}"
        for name, text in texts(SOURCE).items()
        if name != "broker/settlement.py"
        for match in _ENDS_STIMULI.finditer(text)
        if match[1] not in _UNFINISHED
    ]

    assert found == []
    assert _ENDS_STIMULI.search(texts(SOURCE)["broker/settlement.py"])


def test_no_stimulus_is_born_ended():
    filing = texts(SOURCE)["intake/filing.py"]

    assert "settled_at=None" in filing
    assert places(re.compile(r"settled_at = :now"), but={"broker/settlement.py"}) == [
        line
        for line in places(re.compile(r"settled_at = :now"), but={"broker/settlement.py"})
        if line.startswith(("turns/", "outbox/"))  # of questions, calls and deliveries
    ]


def test_only_the_ending_ends_a_turn():
    calls = places(re.compile(r"\bturns\.end\("), but={"turn/ending.py"})
    statements = places(re.compile(r"UPDATE turns SET state"), but={"turns/turns.py"})

    assert (calls, statements) == ([], [])


def test_one_ending_and_one_settlement_are_built_for_a_runtime():
    assert places(re.compile(r"(?<![\w.])(?:Ending|Settlement)\("), but=set()) == [
        "assembly/engine.py: Settlement(",
        "assembly/engine.py: Ending(",
    ]
