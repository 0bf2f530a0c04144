"""A provider that is reached through the proxy of the environment."""

import pytest

from tests.integration.net.proxy import LoopbackProxy, proxying
from tests.integration.providers.scenes import ANTHROPIC, answered, talking
from wakeful.testing.providers.plan import Step
from wakeful.testing.providers.process import Providers
from wakeful.turns.turns import TurnState

NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


async def test_a_turn_speaks_with_its_provider_through_a_proxy(
    stand_in: Providers, monkeypatch: pytest.MonkeyPatch
):
    stand_in.plan(proxied=[Step(text="hello from behind")])
    async with proxying(LoopbackProxy(stand_in.port)) as proxy:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://anthropic.test")
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        async with talking(ANTHROPIC) as runtime:
            turn = await answered(runtime, "[proxied] are you there?")

    assert turn.state is TurnState.DONE
    assert proxy.heads[0].startswith(b"POST http://anthropic.test/v1/messages HTTP/1.1")


async def test_a_provider_on_this_machine_is_asked_directly(
    stand_in: Providers, monkeypatch: pytest.MonkeyPatch
):
    stand_in.plan(here=[Step(text="hello")])
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with talking(ANTHROPIC) as runtime:
        turn = await answered(runtime, "[here] are you there?")

    assert turn.state is TurnState.DONE
