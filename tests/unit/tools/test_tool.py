from typing import Any

import pytest

from tests.unit.tools.calls import call, make_context
from wakeful.tools.tool import Effect, LedgerContext, Tool, ToolContext, tool
from wakeful.vocabulary.errors import InvalidInput


@tool(effect=Effect.READ)
def weigh(context: ToolContext, item_name: str, grams: int = 5, is_wet: bool = False) -> str:
    """Weigh something."""
    return f"{item_name} {grams} {is_wet} for {context.agent_id}"


def test_a_model_is_told_every_argument_but_the_context() -> None:
    spec = weigh.spec

    assert (spec.name, spec.description) == ("weigh", "Weigh something.")
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "item_name": {"type": "string"},
            "grams": {"type": "integer", "default": 5},
            "is_wet": {"type": "boolean", "default": False},
        },
        "required": ["item_name"],
        "additionalProperties": False,
    }


async def test_the_context_is_given_by_the_runtime() -> None:
    result = await call(weigh, make_context(), item_name="tea", grams=7)

    assert result.text == "tea 7 False for main"


def test_camel_case_arguments_are_understood() -> None:
    assert weigh.parse({"itemName": "tea", "isWet": True}) == {
        "item_name": "tea",
        "grams": 5,
        "is_wet": True,
    }


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "item_name"),
        ({"item_name": 5}, "item_name"),
        ({"item_name": "tea", "grams": "much"}, "grams"),
        ({"item_name": "tea", "colour": "red"}, "colour"),
        ({"item_name": None}, "item_name"),
        ({"item_name": "tea", "context": {}}, "context"),
    ],
)
async def test_a_bad_argument_is_named(arguments: dict[str, Any], named: str) -> None:
    result = await call(weigh, make_context(), **arguments)

    assert result.is_error
    assert named in result.text


def test_a_tool_without_a_proper_name_is_refused() -> None:
    with pytest.raises(InvalidInput, match="name"):
        Tool(lambda: None)


def test_a_time_out_must_be_positive() -> None:
    def act() -> None: ...

    with pytest.raises(InvalidInput, match="timeout_s"):
        Tool(act, timeout_s=0)


def test_every_parameter_must_be_annotated() -> None:
    def act(thing) -> None: ...  # pyright: ignore[reportUnknownParameterType, reportMissingParameterType]

    with pytest.raises(InvalidInput, match="thing"):
        Tool(act)  # pyright: ignore[reportUnknownArgumentType]


def test_open_ended_parameters_are_refused() -> None:
    def act(*things: str) -> None: ...

    with pytest.raises(InvalidInput, match="things"):
        Tool(act)


def test_a_ledger_tool_must_be_a_plain_function() -> None:
    async def act() -> None: ...

    with pytest.raises(InvalidInput, match="plain function"):
        Tool(act, effect=Effect.LEDGER)


def test_a_ledger_tool_may_not_ask_for_the_context_of_others() -> None:
    def act(context: ToolContext) -> None: ...

    with pytest.raises(InvalidInput, match="ToolContext"):
        Tool(act, effect=Effect.LEDGER)


def test_only_a_ledger_tool_may_ask_for_the_ledger() -> None:
    def act(context: LedgerContext) -> None: ...

    with pytest.raises(InvalidInput, match="LedgerContext"):
        Tool(act, effect=Effect.EFFECT)


def test_a_bare_decorator_makes_a_tool_of_the_careful_class() -> None:
    @tool
    def act() -> None: ...

    assert (act.name, act.effect, act.is_for_external) == ("act", Effect.EFFECT, False)
