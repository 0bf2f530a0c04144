"""What `WAKEFUL_FAIL` may say, and what is told about anything else."""

import pytest

from wakeful.vocabulary import failpoints
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.failpoints import FailpointRaised, failpoint


@pytest.fixture(autouse=True)
def _disarmed():
    yield
    failpoints.arm({})


def test_a_point_is_passed_until_its_turn_comes() -> None:
    failpoints.arm({"WAKEFUL_FAIL": "here:raise:2,there:raise"})
    failpoint("here")
    with pytest.raises(FailpointRaised):
        failpoint("here")
    with pytest.raises(FailpointRaised):
        failpoint("there")


@pytest.mark.parametrize(
    "value", ["reply", ":kill", "reply:explode", "reply:kill:", "reply:kill:x", "reply:kill:1:2"]
)
def test_a_bad_value_is_told_with_its_form_and_arms_nothing(value: str) -> None:
    with pytest.raises(InvalidInput, match="POINT:ACTION") as told:
        failpoints.arm({"WAKEFUL_FAIL": f"here:raise,{value}"})
    assert repr(value) in str(told.value)
    failpoint("here")


def test_a_process_with_a_bad_value_ends_with_one_line() -> None:
    with pytest.raises(SystemExit) as ended:
        failpoints.arm_or_exit({"WAKEFUL_FAIL": "reply:explode"})
    line = ended.value.code
    assert isinstance(line, str)
    assert line.startswith("wakeful: WAKEFUL_FAIL: 'reply:explode' is not")
    assert "\n" not in line
