"""A task list without tasks asks for nothing."""

import pytest

from wakeful.prompts.heartbeat import PROMPT, has_tasks, system_line


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n \t\n",
        "# Heartbeat\n\n## Checks\n#\n",
        "-\n*\n+ \n- [ ]\n- [x]\n1.\n2) \n",
        "<!-- nothing\nyet -->\n# Tasks\n- [ ]  \n",
        "<!-- never closed\n- look at the disk",
    ],
)
def test_a_page_without_tasks_has_none(text: str):
    assert not has_tasks(text)


@pytest.mark.parametrize(
    "text",
    ["look at the disk", "# Tasks\n- look", "#TODO", "- [ ] look", "1. look", "<!-- a --> look"],
)
def test_a_word_is_a_task(text: str):
    assert has_tasks(text)


def test_the_prompt_is_the_one_that_people_know():
    assert PROMPT == (
        "Read HEARTBEAT.md if it exists (workspace context). Follow it strictly. "
        "Do not infer or repeat old tasks from prior chats. "
        "If nothing needs attention, reply HEARTBEAT_OK."
    )
    assert system_line("2026-11-16 09:00", "disk full") == "System: [2026-11-16 09:00] disk full"
