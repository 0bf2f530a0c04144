"""A server that dies in an import leaves nothing to see, or the whole of it."""

import base64
from pathlib import Path

import httpx2
import pytest

from tests.integration.cli.shell import Home
from tests.integration.transcript.files import HEADER, entry, user, written
from tests.pictures import png
from wakeful.access.credentials import FILE_NAME

PICTURE = {
    "type": "image",
    "data": base64.b64encode(png()).decode(),
    "mimeType": "image/png",
}
FILE = written(
    HEADER,
    entry("00000000", None, message={"role": "user", "content": [PICTURE], "timestamp": 1}),
    *(user(f"{number:08x}", f"{number - 1:08x}", "x" * 100) for number in range(1, 1500)),
)


def asked(home: Home, url: str) -> httpx2.Client:
    token = (home.folder / FILE_NAME).read_text(encoding="ascii").strip()
    return httpx2.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=15)


def put(client: httpx2.Client) -> httpx2.Response:
    headers = {"Content-Type": "application/x-ndjson"}
    return client.post("/api/sessions/import?session=old", content=FILE, headers=headers)


@pytest.mark.parametrize(
    ("point", "is_there"),
    [("import-page:kill:2", False), ("import-written:kill", False), ("import-done:kill", True)],
)
def test_a_kill_in_an_import_leaves_nothing_or_all(tmp_path: Path, point: str, is_there: bool):
    home = Home(tmp_path / "a home", WAKEFUL_FAIL=point)
    with home.up() as server:
        with asked(home, server.told["url"]) as client, pytest.raises(httpx2.TransportError):
            put(client)
        server.ended()
    del home.environ["WAKEFUL_FAIL"]

    with home.up() as server, asked(home, server.told["url"]) as client:
        keys = [item["key"] for item in client.get("/api/sessions").json()["items"]]
        seen = [key for key in keys if key != "agent:main:activity"]
        again = put(client)
        taken = client.get("/api/sessions/old/export")

    assert seen == (["agent:main:old"] if is_there else [])
    assert again.status_code == (422 if is_there else 200)
    assert taken.content == FILE
