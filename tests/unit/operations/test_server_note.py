"""The note about a running server is believed only while its process lives."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.children import die_with_parent
from wakeful.operations import server_note
from wakeful.operations.server_note import RunningServer


def test_a_note_of_a_living_process_is_found_and_private(tmp_path: Path):
    here = RunningServer(pid=os.getpid(), url="http://127.0.0.1:1", started_at=1)

    server_note.note(tmp_path, here)

    assert server_note.find(tmp_path) == here
    assert stat.S_IMODE((tmp_path / server_note.NAME).stat().st_mode) == 0o600


def test_a_note_of_a_dead_process_is_not_believed(tmp_path: Path):
    child = subprocess.Popen([sys.executable, "-c", ""], preexec_fn=die_with_parent)
    child.wait()

    server_note.note(tmp_path, RunningServer(pid=child.pid, url="http://127.0.0.1:1", started_at=1))

    assert server_note.find(tmp_path) is None


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"pid": "x"}', b'{"pid":-1,"url":"","started_at":1}']
)
def test_a_broken_note_is_no_note(tmp_path: Path, content: bytes):
    (tmp_path / server_note.NAME).write_bytes(content)

    assert server_note.find(tmp_path) is None


def test_only_its_own_process_removes_a_note(tmp_path: Path):
    server_note.note(tmp_path, RunningServer(pid=1, url="http://127.0.0.1:1", started_at=1))
    server_note.forget(tmp_path)
    assert (tmp_path / server_note.NAME).exists()

    server_note.note(
        tmp_path, RunningServer(pid=os.getpid(), url="http://127.0.0.1:1", started_at=1)
    )
    server_note.forget(tmp_path)
    assert not (tmp_path / server_note.NAME).exists()
