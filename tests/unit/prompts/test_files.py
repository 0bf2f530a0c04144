"""Files of the workspace are part of the system prompt, whose bytes change only with them."""

import os
from pathlib import Path

from wakeful.models.scripted import Scripted, call, says
from wakeful.prompts.files import LONGEST, NAMES, PromptFiles
from wakeful.runtime import Runtime
from wakeful.turn.agent import Agent


def test_the_files_that_are_there_are_read_in_a_fixed_order(tmp_path: Path) -> None:
    for name in reversed(NAMES[:4]):
        (tmp_path / name).write_text(f"I am {name}\n")
    (tmp_path / "OTHER.md").write_text("not me")
    (tmp_path / "SOUL.md").write_text(" \n")

    assert PromptFiles(tmp_path).read() == (
        "# AGENTS.md\n\nI am AGENTS.md\n\n"
        "# USER.md\n\nI am USER.md\n\n"
        "# MEMORY.md\n\nI am MEMORY.md"
    )


def test_without_a_workspace_or_files_there_is_nothing(tmp_path: Path) -> None:
    assert PromptFiles(tmp_path).read() == ""
    assert PromptFiles(tmp_path / "missing").read() == ""


def test_a_long_file_is_cut_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "SOUL.md").write_text("s" * (LONGEST + 5))

    said = PromptFiles(tmp_path).read()

    assert said.endswith("s\n[cut: 5 more characters of SOUL.md are not shown here]")
    assert len(said) < LONGEST + 100


def test_a_file_is_read_again_only_when_it_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "USER.md"
    path.write_text("likes tea")
    files = PromptFiles(tmp_path)
    first = files.read()
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns

    with path.open("r+") as file:  # behind its back: the same size, the same time
        file.write("likes ale")
    os.utime(path, ns=times)
    assert files.read() == first

    path.write_text("likes cake")
    assert files.read() == "# USER.md\n\nlikes cake"
    path.unlink()
    assert files.read() == ""


def test_a_link_out_of_the_workspace_is_not_followed(tmp_path: Path) -> None:
    secret, workspace = tmp_path / "secret", tmp_path / "workspace"
    secret.write_text("the key")
    workspace.mkdir()
    (workspace / "AGENTS.md").symlink_to(secret)
    (workspace / "SOUL.md").mkdir()

    said = PromptFiles(workspace).read()

    assert "the key" not in said
    assert "# AGENTS.md\n\n[not read: path: 'AGENTS.md' is a symbolic link" in said
    assert "# SOUL.md\n\n[not read: path: 'SOUL.md' is a folder]" in said


async def test_the_prompt_is_the_same_in_every_turn_and_changes_only_between_turns(
    tmp_path: Path,
) -> None:
    model = Scripted(
        [
            "one",
            says("", call("write_file", path="AGENTS.md", text="Be bold.")),
            "two",
            "three",
        ]
    )
    (tmp_path / "AGENTS.md").write_text("Be brief.")
    agent = Agent(model=model, instructions="You help.", workspace=tmp_path)
    async with Runtime(agents=[agent]) as runtime:
        for text in "abc":
            await runtime.wait(await runtime.send(text))

    first, second, later, last = (request.system for request in model.requests)
    assert first == second == later
    assert first.endswith("\n\n# AGENTS.md\n\nBe brief.")
    assert last == first.replace("brief", "bold")
