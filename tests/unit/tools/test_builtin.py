from pathlib import Path

from wakeful.tools.builtin import default_tools, optional_tools
from wakeful.tools.reference import reference
from wakeful.tools.tool import Effect
from wakeful.tools.toolbox import Toolbox
from wakeful.vocabulary.stimulus import Trust

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "tools.md"


def test_every_default_tool_has_the_effect_class_it_is_documented_with() -> None:
    assert {tool.name: tool.effect.value for tool in default_tools()} == {
        "current_time": "read",
        "memory_read": "read",
        "memory_write": "idempotent",
        "list_files": "read",
        "read_file": "read",
        "write_file": "idempotent",
        "edit_file": "effect",
        "delete_file": "effect",
        "read_attachment": "read",
        "read_output": "read",
        "save_attachment": "idempotent",
        "sessions_list": "read",
        "sessions_history": "read",
        "check_inbox": "ledger",
        "send_message": "ledger",
        "sleep": "ledger",
        "schedule": "ledger",
        "ask_human": "ledger",
    }


def test_an_external_turn_can_only_look() -> None:
    toolbox = Toolbox(default_tools())

    names = [spec.name for spec in toolbox.specs(Trust.EXTERNAL)]

    assert names == [
        "check_inbox",
        "list_files",
        "memory_read",
        "read_attachment",
        "read_file",
        "read_output",
        "sessions_history",
        "sessions_list",
        "sleep",
    ]
    looking = [name for name in names if toolbox.all()[name].effect is Effect.READ]
    # Each item is read once, and noted so; whoever sleeps rests its own session.
    assert set(names) - set(looking) == {"check_inbox", "sleep"}


def test_the_shell_and_the_web_are_not_among_the_default_tools() -> None:
    assert [tool.name for tool in optional_tools()] == ["shell", "web_fetch"]
    assert not {"shell", "web_fetch"} & {tool.name for tool in default_tools()}
    assert not any(tool.is_for_external for tool in optional_tools())


def test_every_tool_says_what_it_does() -> None:
    assert all(tool.description for tool in (*default_tools(), *optional_tools()))


def test_the_reference_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), "run `make docs`"
