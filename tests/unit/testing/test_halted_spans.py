"""When a client knew that all was halted."""

import pytest

from wakeful.testing.checker.turns import halted_spans

HALT = [("request", "halt"), ("answer", "halt")]
RESUME = [("request", "resume"), ("answer", "resume")]


@pytest.mark.parametrize(
    ("story", "spans"),
    [
        ([*HALT, *RESUME], [(1, 2)]),
        ([*RESUME, *HALT, *RESUME], [(3, 4)]),
        ([HALT[0], RESUME[0], HALT[1], *RESUME, RESUME[1]], []),
        ([RESUME[0], *HALT, RESUME[1], RESUME[0]], []),
        ([HALT[0], *RESUME, HALT[1], RESUME[0]], []),
        ([HALT[0], RESUME[0], HALT[1], RESUME[1], *HALT, *RESUME], [(5, 6)]),
        ([HALT[0], HALT[0], HALT[1], HALT[1], *RESUME], [(3, 4)]),
    ],
)
def test_a_halt_counts_where_nobody_asked_to_resume_before_its_answer(
    story: list[tuple[str, str]], spans: list[tuple[float, float]]
):
    lines = [{"what": what, "do": do, "ok": True, "t": t} for t, (what, do) in enumerate(story)]

    assert halted_spans(lines) == spans
