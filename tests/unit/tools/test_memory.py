import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.tools.calls import call, failure, make_context
from wakeful.tools.memory import LARGEST_MEMORY, memory_read, memory_write
from wakeful.vocabulary.text import clean


async def test_a_memory_is_a_file_of_the_workspace(tmp_path: Path) -> None:
    context = make_context(tmp_path)

    written = await call(memory_write, context, name="cats", text="Tom\n")
    read = await call(memory_read, context, name="cats")

    assert written.text == "wrote 4 bytes to memory/cats.md"
    assert read.text == "Tom\n"
    assert (tmp_path / "memory" / "cats.md").read_text() == "Tom\n"


@pytest.mark.parametrize("name", ["MEMORY", "memory", "Memory", "MEMORY.md"])
async def test_the_index_lies_in_the_workspace_itself(tmp_path: Path, name: str) -> None:
    context = make_context(tmp_path)

    await call(memory_write, context, name=name, text="# Index")
    read = await call(memory_read, context)

    assert (tmp_path / "MEMORY.md").read_text() == "# Index"
    assert read.text == "# Index\n[no other memories]"


async def test_the_index_tells_which_other_memories_there_are(tmp_path: Path) -> None:
    context = make_context(tmp_path)
    await call(memory_write, context, name="cats", text="Tom")
    await call(memory_write, context, name="birds", text="")

    read = await call(memory_read, context)

    assert read.text == "[the index is empty]\n[other memories: birds, cats]"


async def test_before_anything_is_remembered_reading_is_no_error(tmp_path: Path) -> None:
    read = await call(memory_read, make_context(tmp_path / "new"))

    assert (read.is_error, read.text) == (False, "[the index is empty]\n[no other memories]")


async def test_capitals_make_no_other_memory(tmp_path: Path) -> None:
    context = make_context(tmp_path)

    await call(memory_write, context, name="Cats", text="Tom")
    await call(memory_write, context, name="CATS", text="Tim")

    assert (await call(memory_read, context, name="cats")).text == "Tim"
    assert os.listdir(tmp_path / "memory") == ["cats.md"]


async def test_an_unknown_memory_is_named_beside_those_there_are(tmp_path: Path) -> None:
    context = make_context(tmp_path)
    await call(memory_write, context, name="cats", text="Tom")

    said = await failure(memory_read, context, name="dogs")

    assert said == "there is no memory 'dogs' (other memories: cats)"


async def test_writing_twice_is_as_good_as_once(tmp_path: Path) -> None:
    context = make_context(tmp_path)

    first = await call(memory_write, context, name="cats", text="Tom")
    second = await call(memory_write, context, name="cats", text="Tom")

    assert first == second
    assert (tmp_path / "memory" / "cats.md").read_text() == "Tom"


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../x",
        "a/b",
        "/etc/passwd",
        "-a",
        "_a",
        "a.b",
        ".md",
        "a\0",
        "a\n",
        "a" * 65,
        "a" * 65_536,
        "\u212aelvin",
        "\u017f",
        "caf\u00e9",
        "%2e%2e",
        "a\\b",
        "\ud800",
    ],
)
async def test_a_name_outside_the_grammar_is_refused(tmp_path: Path, name: str) -> None:
    context = make_context(tmp_path)

    said = await failure(memory_write, context, name=name, text="t")

    assert said.startswith("name: must be 1 to 64 letters")
    assert await failure(memory_read, context, name=name) == said
    assert os.listdir(tmp_path) == []


async def test_a_memory_may_not_be_a_link(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (tmp_path / "secret.md").write_text("secret")
    (workspace / "memory").symlink_to(tmp_path)

    said = await failure(memory_read, make_context(workspace), name="secret")

    assert "symbolic link" in said


async def test_too_large_a_memory_is_refused(tmp_path: Path) -> None:
    text = "ä" * (LARGEST_MEMORY // 2 + 1)

    said = await failure(memory_write, make_context(tmp_path), name="a", text=text)

    assert said.startswith("text: must be at most")
    assert os.listdir(tmp_path) == []


async def test_without_a_workspace_nothing_can_be_remembered() -> None:
    context = make_context(None)

    assert "no workspace" in await failure(memory_read, context)
    assert "no workspace" in await failure(memory_write, context, name="a", text="t")


# Each example syncs a file: how long that takes is up to the disk.
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)
@given(text=st.text(st.characters(codec=None), max_size=400))
async def test_any_text_is_remembered_as_it_was(tmp_path: Path, text: str) -> None:
    context = make_context(tmp_path)

    await call(memory_write, context, name="any", text=text)
    read = await call(memory_read, context, name="any")

    assert read.text == (clean(text) or "[the memory is empty]")
