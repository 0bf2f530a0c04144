import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.tools.calls import call, failure, make_context
from wakeful.tools.files import (
    FILE_TOOLS,
    MOST_LINES,
    delete_file,
    edit_file,
    list_files,
    read_file,
    write_file,
)
from wakeful.tools.running import LONGEST_RESULT
from wakeful.tools.tool import Tool
from wakeful.vocabulary.text import clean
from wakeful.workspace import LARGEST_FILE, TEMPORARY

SECRET = "the secret outside"
ARGUMENTS: dict[str, dict[str, Any]] = {
    "list_files": {},
    "read_file": {},
    "write_file": {"text": "t"},
    "edit_file": {"old": "secret", "new": "t"},
    "delete_file": {},
}
REFUSED = {
    "parent": "../secret.txt",
    "parent in the middle": "a/../../secret.txt",
    "parent at the end": "a/..",
    "only parent": "..",
    "absolute": "/etc/passwd",
    "absolute twice": "//etc/passwd",
    "NUL": "a\0.txt",
    "NUL after a good name": "inside.txt\0.png",
    "newline": "a\nb",
    "escape": "\x1b[31mred",
    "backslash": "..\\secret.txt",
    "lone surrogate": "\ud800.txt",
    "escaped byte": "\udcff",
    "long name": "n" * 65_536,
    "long component": "n" * 256,
    "long path": "/".join(["folder"] * 200),
    "deep path": "/".join("abcdefghijklmnopqrstuvwxyz0123456789"),
    "temporary": f"a{TEMPORARY}",
    "line separator": "a\u2028b",
}
HARMLESS = {  # names like any other here, which only look like ways out
    "percent": "%2e%2e/secret.txt",
    "percent slash": "..%2fsecret.txt",
    "one dot leader": "\u2024\u2024/secret.txt",
    "two dot leader": "\u2025/secret.txt",
    "fullwidth dots": "\uff0e\uff0e/secret.txt",
    "fullwidth slash": "..\uff0fsecret.txt",
    "division slash": "..\u2215secret.txt",
    "three dots": ".../secret.txt",
    "device": "CON",
    "device with suffix": "nul.txt",
    "tilde": "~/secret.txt",
    "drive": "C:secret.txt",
    "dot folder": "./a/./b.txt",
    "spaces": " .. /secret.txt",
    "option": "-rf",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with a file, beside a secret that lies outside."""
    (tmp_path / "secret.txt").write_text(SECRET)
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "inside.txt").write_text("inside secret\n")
    return folder


class Watch:
    """Sees every path that is opened, as the interpreter's own audit does."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.is_on = False
        sys.addaudithook(self._see)

    def _see(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.is_on and event in ("open", "os.mkdir", "os.remove", "os.rename"):
            self.opened.append(str(arguments[0]))


WATCH = Watch()


@pytest.fixture
def watch() -> Iterator[Watch]:
    WATCH.opened.clear()
    WATCH.is_on = True
    yield WATCH
    WATCH.is_on = False


def outside(workspace: Path) -> dict[str, str]:
    return {
        str(path.relative_to(workspace.parent)): path.read_text()
        for path in workspace.parent.rglob("*")
        if path.is_file() and not path.is_symlink() and workspace not in path.parents
    }


@pytest.mark.parametrize("tool", FILE_TOOLS, ids=lambda tool: tool.name)
@pytest.mark.parametrize("path", REFUSED.values(), ids=REFUSED)
async def test_a_path_that_could_lead_outside_is_refused(
    workspace: Path, watch: Watch, tool: Tool, path: str
) -> None:
    where = {"folder" if tool is list_files else "path": path}

    said = await failure(tool, make_context(workspace), **ARGUMENTS[tool.name], **where)

    assert said.startswith("path: ")
    assert len(said) < 500
    assert watch.opened == []
    assert outside(workspace) == {"secret.txt": SECRET}


@pytest.mark.parametrize("path", HARMLESS.values(), ids=HARMLESS)
async def test_a_name_that_only_looks_dangerous_stays_inside(
    workspace: Path, watch: Watch, path: str
) -> None:
    context = make_context(workspace)

    written = await call(write_file, context, path=path, text="t")
    read = await call(read_file, context, path=path)

    assert (written.is_error, read.text) == (False, "t")
    assert [name for name in watch.opened if "/" in name and name != str(workspace)] == []
    assert outside(workspace) == {"secret.txt": SECRET}
    assert (workspace / path).is_file()


@pytest.mark.parametrize("tool", FILE_TOOLS, ids=lambda tool: tool.name)
@pytest.mark.parametrize("path", ["link/secret.txt", "sub/link/secret.txt"])
async def test_a_link_in_the_middle_is_not_followed(workspace: Path, tool: Tool, path: str) -> None:
    (workspace / "link").symlink_to(workspace.parent)
    (workspace / "sub").mkdir()
    (workspace / "sub" / "link").symlink_to(workspace.parent)
    where = {"folder": path.removesuffix("/secret.txt")} if tool is list_files else {"path": path}

    said = await failure(tool, make_context(workspace), **ARGUMENTS[tool.name], **where)

    assert "symbolic link" in said
    assert outside(workspace) == {"secret.txt": SECRET}


@pytest.mark.parametrize(
    "tool", [tool for tool in FILE_TOOLS if tool is not list_files], ids=lambda tool: tool.name
)
@pytest.mark.parametrize("target", ["../secret.txt", "inside.txt", "nowhere", "link"])
async def test_a_link_is_no_file(workspace: Path, tool: Tool, target: str) -> None:
    (workspace / "link").symlink_to(target)

    said = await failure(tool, make_context(workspace), **ARGUMENTS[tool.name], path="link")

    assert "symbolic link" in said
    assert (workspace / "link").is_symlink()
    assert outside(workspace) == {"secret.txt": SECRET}


@pytest.mark.parametrize(
    "tool", [tool for tool in FILE_TOOLS if tool is not list_files], ids=lambda tool: tool.name
)
async def test_a_pipe_is_no_file_and_is_not_waited_for(workspace: Path, tool: Tool) -> None:
    os.mkfifo(workspace / "pipe")

    said = await failure(tool, make_context(workspace), **ARGUMENTS[tool.name], path="pipe")

    assert "not a regular file" in said


@pytest.mark.parametrize(
    "tool", [tool for tool in FILE_TOOLS if tool is not list_files], ids=lambda tool: tool.name
)
async def test_a_folder_is_no_file(workspace: Path, tool: Tool) -> None:
    (workspace / "sub").mkdir()

    said = await failure(tool, make_context(workspace), **ARGUMENTS[tool.name], path="sub")

    assert "is a folder" in said


@pytest.mark.parametrize("path", ["inside.txt/x", "inside.txt/"])
async def test_a_file_is_no_folder(workspace: Path, path: str) -> None:
    said = await failure(write_file, make_context(workspace), path=path, text="t")

    assert said.startswith("path: ")


@pytest.mark.parametrize("tool", FILE_TOOLS, ids=lambda tool: tool.name)
async def test_an_agent_without_a_workspace_is_told_so(tool: Tool) -> None:
    where = {} if tool is list_files else {"path": "a.txt"}

    said = await failure(tool, make_context(None), **ARGUMENTS[tool.name], **where)

    assert said == "the agent 'main' has no workspace configured"


# Each example syncs a file: how long that takes is up to the disk.
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)
@given(text=st.text(st.characters(codec=None), max_size=400))
async def test_any_text_comes_back_as_it_was_written(workspace: Path, text: str) -> None:
    context = make_context(workspace)

    written = await call(write_file, context, path="any.txt", text=text)
    read = await call(read_file, context, path="any.txt")

    assert not written.is_error
    assert read.text == (clean(text) or "[the file is empty]")


# Each example syncs a file: how long that takes is up to the disk.
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=100
)
@given(path=st.text(st.characters(codec=None) | st.sampled_from("./\\~\0"), max_size=60))
async def test_no_path_at_all_leads_outside(workspace: Path, path: str) -> None:
    result = await call(write_file, make_context(workspace), path=path, text="t")

    assert outside(workspace) == {"secret.txt": SECRET}
    if not result.is_error:
        assert (workspace / path).read_text() == "t"


async def test_a_written_file_is_private_and_its_folders_too(workspace: Path) -> None:
    await call(write_file, make_context(workspace), path="a/b/c.txt", text="t")

    assert (workspace / "a/b/c.txt").stat().st_mode & 0o777 == 0o600
    assert (workspace / "a").stat().st_mode & 0o777 == 0o700


async def test_a_workspace_is_made_by_the_first_write_only(tmp_path: Path) -> None:
    context = make_context(tmp_path / "not" / "there")

    listed = await call(list_files, context)
    missing = await failure(read_file, context, path="a.txt")
    is_made_by_reading = (tmp_path / "not").exists()
    written = await call(write_file, context, path="a.txt", text="t")

    assert listed.text == "the workspace is empty"
    assert missing == "there is no 'a.txt' in the workspace"
    assert not is_made_by_reading
    assert written.text == "wrote 1 bytes to a.txt"


async def test_writing_leaves_no_other_file_behind(workspace: Path) -> None:
    await call(write_file, make_context(workspace), path="inside.txt", text="new")
    await call(write_file, make_context(workspace), path="inside.txt", text="newer")

    assert os.listdir(workspace) == ["inside.txt"]


async def test_too_large_a_text_is_refused_and_nothing_is_written(workspace: Path) -> None:
    said = await failure(
        write_file, make_context(workspace), path="inside.txt", text="x" * (LARGEST_FILE + 1)
    )

    assert str(LARGEST_FILE) in said
    assert (workspace / "inside.txt").read_text() == "inside secret\n"


async def test_too_large_a_file_is_not_read(workspace: Path) -> None:
    with (workspace / "large").open("wb") as file:
        file.truncate(LARGEST_FILE + 1)

    said = await failure(read_file, make_context(workspace), path="large")

    assert f"has {LARGEST_FILE + 1} bytes" in said


async def test_reading_goes_on_where_it_stopped(workspace: Path) -> None:
    context = make_context(workspace)
    (workspace / "long.txt").write_text("".join(f"line {n}\n" for n in range(1, 11)))

    first = await call(read_file, context, path="long.txt", max_lines=4)
    last = await call(read_file, context, path="long.txt", start_line=9, max_lines=4)

    assert first.text == (
        "line 1\nline 2\nline 3\nline 4\n[lines 1 to 4 of 11; go on with start_line 5]"
    )
    assert last.text == "line 9\nline 10\n"


async def test_a_page_never_exceeds_what_a_model_is_shown(workspace: Path) -> None:
    context = make_context(workspace)
    (workspace / "wide.txt").write_text(("x" * 1000 + "\n") * 50)

    shown = (await call(read_file, context, path="wide.txt")).text

    assert len(shown) <= LONGEST_RESULT
    assert shown.endswith("[lines 1 to 16 of 51; go on with start_line 17]")


async def test_a_line_longer_than_a_page_is_cut_and_marked(workspace: Path) -> None:
    (workspace / "line.txt").write_text("a\n" + "x" * 100_000 + "\nb")

    shown = (await call(read_file, make_context(workspace), path="line.txt", start_line=2)).text

    assert len(shown) <= LONGEST_RESULT
    assert "of the 100000 characters of line 2]" in shown
    assert shown.endswith("go on with start_line 3]")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"start_line": 0}, "start_line"),
        ({"start_line": 9}, "start_line"),
        ({"max_lines": 0}, "max_lines"),
        ({"max_lines": MOST_LINES + 1}, "max_lines"),
    ],
)
async def test_lines_that_do_not_exist_are_refused(
    workspace: Path, arguments: dict[str, int], named: str
) -> None:
    said = await failure(read_file, make_context(workspace), path="inside.txt", **arguments)

    assert said.startswith(f"{named}: ")


async def test_bytes_that_are_no_text_are_shown_with_marks_and_not_edited(
    workspace: Path,
) -> None:
    (workspace / "raw").write_bytes(b"a\xff\0b")
    context = make_context(workspace)

    shown = await call(read_file, context, path="raw")
    said = await failure(edit_file, context, path="raw", old="a", new="c")

    assert shown.text == "a\ufffd\ufffdb"
    assert "not UTF-8" in said
    assert (workspace / "raw").read_bytes() == b"a\xff\0b"


async def test_an_edit_replaces_the_one_place(workspace: Path) -> None:
    (workspace / "code.py").write_bytes(b"one\r\ntwo\r\nthree\r\n")

    result = await call(
        edit_file, make_context(workspace), path="code.py", old="two", new="2\ud800"
    )

    assert result.text == "edited code.py at line 2"
    assert (workspace / "code.py").read_bytes() == "one\r\n2\ufffd\r\nthree\r\n".encode()


@pytest.mark.parametrize(
    ("old", "rule"),
    [
        ("four", "does not occur"),
        ("aa", "more than once"),
        ("e", "more than once"),
        ("", "must not be empty"),
    ],
)
async def test_an_edit_that_is_not_clear_is_refused(workspace: Path, old: str, rule: str) -> None:
    (workspace / "code.py").write_text("one three aaa")

    said = await failure(edit_file, make_context(workspace), path="code.py", old=old, new="x")

    assert said.startswith("old: ")
    assert rule in said
    assert (workspace / "code.py").read_text() == "one three aaa"


@pytest.mark.parametrize("tool", [edit_file, delete_file], ids=lambda tool: tool.name)
async def test_what_does_not_exist_cannot_be_changed(workspace: Path, tool: Tool) -> None:
    said = await failure(tool, make_context(workspace), **ARGUMENTS[tool.name], path="no/such.txt")

    assert "there is no" in said
    assert not (workspace / "no").exists()


async def test_a_deleted_file_is_gone(workspace: Path) -> None:
    context = make_context(workspace)

    result = await call(delete_file, context, path="inside.txt")
    again = await failure(delete_file, context, path="inside.txt")

    assert result.text == "deleted inside.txt"
    assert not (workspace / "inside.txt").exists()
    assert "there is no file" in again


async def test_a_listing_shows_what_there_is(workspace: Path) -> None:
    (workspace / "sub").mkdir()
    (workspace / "link").symlink_to("/etc")
    (workspace / "new\nline").write_text("")
    (workspace / f".x{TEMPORARY}").write_text("")

    result = await call(list_files, make_context(workspace))

    assert result.text.splitlines() == [
        "inside.txt (14 bytes)",
        "link (a link or a device: not accessible)",
        "new line (0 bytes)",
        "sub/",
    ]


async def test_a_listing_is_bounded_and_says_so(workspace: Path) -> None:
    for number in range(5):
        (workspace / f"{number}.txt").touch()

    result = await call(list_files, make_context(workspace), limit=2)

    assert result.text.splitlines() == [
        "0.txt (0 bytes)",
        "1.txt (0 bytes)",
        "[4 more; raise limit to see them]",
    ]


@pytest.mark.parametrize("limit", [0, -1, 1001])
async def test_a_bad_limit_is_refused(workspace: Path, limit: int) -> None:
    assert (await failure(list_files, make_context(workspace), limit=limit)).startswith("limit: ")


async def test_an_empty_folder_is_called_empty(workspace: Path) -> None:
    (workspace / "sub").mkdir()

    result = await call(list_files, make_context(workspace), folder="sub/")

    assert result.text == "the folder is empty"
