from pathlib import Path

import pytest

from tests.unit.tools.calls import call, failure, make_context
from wakeful.tools.running import cut
from wakeful.tools.shell import LONGEST_TIMEOUT_S, shell
from wakeful.vocabulary.clock import SystemClock


async def test_a_command_runs_in_the_workspace(tmp_path: Path) -> None:
    context = make_context(tmp_path / "new", SystemClock())

    result = await call(shell, context, command="echo text > file; ls; pwd")

    assert result.text == f"file\n{tmp_path}/new\n\n[exit code 0]"
    assert not result.is_error


async def test_a_command_that_fails_is_an_error_with_its_code(tmp_path: Path) -> None:
    said = await failure(shell, make_context(tmp_path, SystemClock()), command="false")

    assert said == "[exit code 1]"


async def test_a_command_that_takes_too_long_is_told(tmp_path: Path) -> None:
    said = await failure(
        shell, make_context(tmp_path, SystemClock()), command="echo a; sleep 600", timeout_s=1
    )

    assert said == "a\n\n[timed out after 1 s and was ended; its outcome is unknown]"


async def test_a_flood_is_marked_as_cut(tmp_path: Path) -> None:
    result = await call(
        shell,
        make_context(tmp_path, SystemClock()),
        command="head -c 3000000 /dev/zero | tr '\\0' x",
    )

    shown, _ = cut(result.text, "k")
    assert "more bytes of output were dropped]\n[exit code 0]" in result.text
    assert "[cut: " in shown


@pytest.mark.parametrize("timeout_s", [0, -1, LONGEST_TIMEOUT_S + 1])
async def test_a_time_limit_out_of_bounds_is_refused(tmp_path: Path, timeout_s: int) -> None:
    said = await failure(shell, make_context(tmp_path), command="true", timeout_s=timeout_s)

    assert said.startswith("timeout_s: ")


async def test_without_a_workspace_there_is_no_shell() -> None:
    assert "no workspace" in await failure(shell, make_context(None), command="true")
