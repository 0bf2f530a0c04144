"""Secrets stay secret, and hostile text stays text."""

import json
import logging
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.integration.http.serving import following, house, take
from wakeful.access.credentials import FILE_NAME
from wakeful.settings.settings import Settings
from wakeful.vocabulary.text import clean

HOSTILE = "\x1b[31mred\x1b[0m\r\nERROR fake log line\x00\x9b\u2028 \ud83d end"


def listen(caplog: pytest.LogCaptureFixture) -> None:
    """Hear everything that is logged from now on."""
    caplog.set_level(logging.DEBUG)
    logging.getLogger("wakeful").debug("somebody listens")  # a server at peace may say nothing


def logged(caplog: pytest.LogCaptureFixture) -> str:
    """Return what the server said; the client of the test talks of its own requests."""
    said = [record for record in caplog.records if not record.name.startswith("http")]
    assert said
    return "\n".join(logging.Formatter().format(record) for record in said)


async def test_no_secret_is_in_any_log_file_answer_event_or_metric(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    listen(caplog)
    seen: list[str] = []
    folder = tmp_path / "home"
    async with (
        house(settings=Settings(home=folder, drain_s=1)) as home,
        home.client(home.operator) as client,
        following(client) as told,
    ):
        made = (await client.post("/api/tokens", json={"name": "n", "scopes": ["send"]})).json()
        operator = home.runtime.operator
        assert operator is not None
        code = await home.runtime.credentials.login_code(operator.token.id)
        login = await client.post("/api/login", json={"code": code})
        cookie = login.cookies["wakeful"]
        canaries = [home.operator, made["token"], code, cookie, "wrong-canary-secret"]
        async with home.client("wrong-canary-secret") as stranger:
            seen.append((await stranger.get("/api/sessions")).text)
            seen.append((await stranger.post("/api/login", json={"code": canaries[-1]})).text)
        for secret in canaries:
            for path in (
                f"/api/sessions?token={secret}",
                f"/api/stimuli?limit={secret}",
                f"/api/tokens?x={secret}",
            ):
                seen.append((await client.get(path)).text.replace(secret, "", 1))
        await client.post("/api/sessions/main/messages?wait=10", json={"text": "hello"})
        seen += [str(frame) for frame in await take(told, 4)]
        for path in ("/metrics", "/api/tokens", "/api/sessions", "/openapi.json"):
            seen.append((await client.get(path)).text)

    kept = {file: file.read_bytes() for file in folder.rglob("*") if file.name != FILE_NAME}
    for secret in canaries:
        assert not [text for text in seen if secret in text]
        assert secret not in logged(caplog)
        assert not [file for file, content in kept.items() if secret.encode() in content]


async def test_a_home_is_private_whatever_the_umask(tmp_path: Path):
    """T24: files at rest are their owner's alone."""
    before = os.umask(0)
    try:
        folder = tmp_path / "home"
        async with house(settings=Settings(home=folder, drain_s=1)) as home:
            await home.runtime.send("hello")
            modes = {
                path: stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.rglob("*")]
            }
    finally:
        os.umask(before)

    assert folder / FILE_NAME in modes
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}


async def test_the_operators_token_is_the_same_after_a_restart(tmp_path: Path):
    async with house(settings=Settings(home=tmp_path / "home", drain_s=1)) as home:
        first = home.operator
    async with house(settings=Settings(home=tmp_path / "home", drain_s=1)) as home:
        second = home.operator
    (tmp_path / "home" / FILE_NAME).unlink()
    async with house(settings=Settings(home=tmp_path / "home", drain_s=1)) as home:
        third = home.operator
        async with home.client(first) as old, home.client(third) as new:
            answers = [(await one.get("/api/sessions")).status_code for one in (old, new)]

    assert first == second
    assert first != third
    assert answers == [401, 200]


async def test_control_characters_reach_neither_logs_nor_names(caplog: pytest.LogCaptureFixture):
    """T16: no text pretends to be another line."""
    listen(caplog)
    async with house() as home, home.client(home.operator) as client:
        body = {"text": HOSTILE, "source": "a\x1b[31m\nb"}
        answer = await client.post("/api/sessions/main/messages?wait=10", **as_json(body))
        refused = await client.post(
            "/api/sessions/main/messages", **as_json({"text": "x", "priority": HOSTILE})
        )
        stimulus = (await client.get(f"/api/stimuli/{answer.json()['stimulus_id']}")).json()

        assert stimulus["source"] == "a [31m b"
        assert stimulus["text"] == clean(HOSTILE)
        assert refused.status_code == 422
        assert "\x1b" not in refused.json()["detail"]
        assert "\n" not in refused.json()["detail"]
    assert "\x1b" not in logged(caplog)
    assert "ERROR fake log line" not in logged(caplog)


def as_json(body: dict[str, str]) -> dict[str, Any]:
    """Return a body with lone surrogates, which the client would not write by itself."""
    return {"content": json.dumps(body), "headers": {"Content-Type": "application/json"}}


texts = st.text(st.characters(codec=None), min_size=1, max_size=200)


@settings(
    max_examples=4,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(texts, min_size=30, max_size=60))
async def test_any_text_comes_back_as_it_went_in_but_for_what_cannot_be_stored(parts: list[str]):
    async with house() as home, home.client(home.operator) as client:
        for part in parts:
            sent = await client.post("/api/sessions/main/messages", **as_json({"text": part}))
            if sent.status_code != 202:
                assert not clean(part).strip()
                continue
            path = f"/api/stimuli/{sent.json()['stimulus_id']}"
            assert (await client.get(path)).json()["text"] == clean(part)
