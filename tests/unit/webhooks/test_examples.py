"""An example carries whatever its sender wants to try."""

from typing import Any

import pytest

from wakeful.settings.hooks import HookSettings, hook_of
from wakeful.webhooks.examples import example
from wakeful.webhooks.verification import Scheme

HOOK = hook_of("code", HookSettings(verify=Scheme.GITHUB, secret="a-secret-of-theirs"))


@pytest.mark.parametrize(
    ("payload", "event"),
    [
        ({"ref": "main"}, "push"),
        ({}, "ping"),
        ("ref", "ping"),
        (["ref"], "ping"),
        (7, "ping"),
        (True, "ping"),
    ],
)
def test_an_example_may_carry_any_json(payload: Any, event: str):
    assert example(HOOK, "d-1", 0, payload).headers["x-github-event"] == event
