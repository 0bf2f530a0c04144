"""A command that is repeated with its key after a kill is done once, wherever the kill fell."""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.server_process import serving

KEY = {"Idempotency-Key": "k"}
PATH = "/api/sessions/main/messages"


async def done_once(folder: Path, point: str, text: str) -> tuple[Any, Any, list[Any]]:
    """Say a command that kills the server, and say it again twice in the next life."""
    async with serving(folder, WAKEFUL_FAIL=f"{point}:kill:2") as server:
        await server.say("hello")
        async with server.client() as client:
            await client.post(PATH, json={"text": "/whoami"})  # passes the point once
            with pytest.raises(httpx2.TransportError):
                await client.post(PATH, json={"text": text}, headers=KEY)
    async with serving(folder) as server, server.client() as client:
        again = await client.post(PATH, json={"text": text}, headers=KEY)
        more = await client.post(PATH, json={"text": text}, headers=KEY)
        answers = [again.json(), more.json()]
        rows = server.rows(
            "SELECT (SELECT COUNT(*) FROM past_transcripts), "
            "(SELECT COUNT(*) FROM stimuli WHERE kind = 'system.compaction'), "
            f"(SELECT COUNT(*) FROM entries WHERE body LIKE '%{text}%')"
        )
    return answers[0], answers[1], rows


@pytest.mark.parametrize("point", ["command-read", "command-done"])
@pytest.mark.parametrize(
    ("text", "resets", "stimuli"), [("/new", 1, 0), ("/compact", 0, 1), ("/stop", 0, 0)]
)
async def test_a_command_is_done_once_over_a_kill(
    tmp_path: Path, point: str, text: str, resets: int, stimuli: int
):
    first, second, rows = await done_once(tmp_path / "home", point, text)

    assert first["outcome"] == "command"
    assert first == second
    assert [tuple(row) for row in rows] == [(resets, stimuli, 1)]
