"""What comes along with a message is read and measured once, away from everybody else."""

import base64
import binascii
import hashlib
import threading
from collections.abc import Callable
from typing import Any

import pytest

from wakeful.intake.draft import ready
from wakeful.testing.kit import Scripted, in_memory
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.stimulus import Attachment

MEBIBYTE = 1024 * 1024
CONTENT = bytes(10 * MEBIBYTE)
LARGE = Attachment(
    name="a.bin", media_type="application/zip", data=base64.b64encode(CONTENT).decode()
)


def watched(act: Callable[..., Any], threads: list[str]) -> Callable[..., Any]:
    """Return the function, noting in which thread it is given something large."""

    def noting(data: Any = b"", **options: Any) -> Any:
        if len(data) > MEBIBYTE:
            threads.append(threading.current_thread().name)
        return act(data, **options)

    return noting


async def test_ten_mebibytes_are_read_and_hashed_once_and_neither_on_the_loop_nor_in_the_write(
    monkeypatch: pytest.MonkeyPatch,
):
    reading: list[str] = []
    hashing: list[str] = []
    async with in_memory(Scripted(["well"])) as runtime:
        monkeypatch.setattr(binascii, "a2b_base64", watched(binascii.a2b_base64, reading))
        monkeypatch.setattr(hashlib, "sha256", watched(hashlib.sha256, hashing))
        receipt = await runtime.send("look", attachments=[LARGE], dedup_key="once")
        monkeypatch.undo()
        kept = (await runtime.services.views.ledger.get(receipt.stimulus_id)).attachments

    assert [(one.size, one.hash) for one in kept] == [
        (len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
    ]
    assert len(reading) == len(hashing) == 1
    assert not {"MainThread", "wakeful-writer"} & {*reading, *hashing}


@pytest.mark.parametrize(
    ("name", "media_type", "data"),
    [
        ("x" * 999, "a/b", ""),
        ("a]\n[b", "a/b", ""),
        ("x", "", ""),
        ("x", "a/b", "A" * 20_000_000),
        ("x", "a/b", "no base64!"),
        ("x", "a/b", "QQ=" + "A" * 40_000),
    ],
)
async def test_what_cannot_be_kept_is_refused(name: str, media_type: str, data: str):
    with pytest.raises(InvalidInput, match="attachments: "):
        await ready([Attachment(name=name, media_type=media_type, data=data)])
