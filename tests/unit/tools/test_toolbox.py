import pytest

from wakeful.tools.tool import Tool
from wakeful.tools.toolbox import Toolbox
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.stimulus import Trust


def act() -> None: ...


def make(name: str, *, is_for_external: bool = False) -> Tool:
    return Tool(act, name=name, is_for_external=is_for_external)


def test_tools_are_shown_in_one_order_however_they_were_given() -> None:
    toolbox = Toolbox([make("b"), make("c"), make("a")])

    assert [spec.name for spec in toolbox.specs(Trust.OPERATOR)] == ["a", "b", "c"]


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidInput, match="'a'"):
        Toolbox([make("a"), make("a")])


def test_an_external_turn_neither_sees_nor_gets_what_is_not_for_it() -> None:
    toolbox = Toolbox([make("look", is_for_external=True), make("change")])

    assert [spec.name for spec in toolbox.specs(Trust.EXTERNAL)] == ["look"]
    assert toolbox.get("change", Trust.EXTERNAL) is None
    assert toolbox.get("change", Trust.OPERATOR) is not None


def test_an_unknown_name_is_no_tool() -> None:
    assert Toolbox([]).get("nothing", Trust.OPERATOR) is None
