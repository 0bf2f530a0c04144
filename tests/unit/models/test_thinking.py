"""A level that a model lacks becomes the nearest lower one."""

import pytest

from wakeful.models.thinking import LEVELS, levels, nearest
from wakeful.vocabulary.agent import ThinkingLevel

OFF, LOW, MEDIUM, HIGH, XHIGH = LEVELS
OLD_OPENAI = {"supports_thinking": True, "openai_reasoning_efforts": frozenset({"low", "high"})}


@pytest.mark.parametrize(
    ("wanted", "had", "gets"),
    [
        (XHIGH, {OFF, LOW, HIGH}, HIGH),
        (MEDIUM, {OFF, LOW, HIGH}, LOW),
        (HIGH, {OFF, LOW, HIGH}, HIGH),
        (OFF, {LOW, HIGH}, LOW),
        (MEDIUM, {HIGH}, HIGH),
        (HIGH, set[ThinkingLevel](), None),
    ],
)
def test_the_nearest_lower_level_is_taken(
    wanted: ThinkingLevel, had: set[ThinkingLevel], gets: ThinkingLevel | None
):
    assert nearest(wanted, had) is gets


@pytest.mark.parametrize(
    ("profile", "had"),
    [
        ({}, set[ThinkingLevel]()),
        (OLD_OPENAI, {LOW, HIGH}),
        ({"supports_thinking": True, "openai_supports_reasoning": True}, set(LEVELS)),
        ({"supports_thinking": True, "anthropic_supports_xhigh_effort": True}, set(LEVELS)),
        ({"supports_thinking": True}, {OFF, LOW, MEDIUM, HIGH}),
        ({"thinking_always_enabled": True}, {LOW, MEDIUM, HIGH}),
    ],
)
def test_a_profile_tells_the_levels(profile: dict[str, object], had: set[ThinkingLevel]):
    assert levels(profile) == had
