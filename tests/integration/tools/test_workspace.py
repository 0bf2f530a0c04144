"""What others do to the workspace while it is used: swapped links, other writers, crashes."""

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from wakeful.vocabulary.errors import InvalidInput, NotFound, Permanent, Transient, WakefulError
from wakeful.workspace import TEMPORARY, Workspace

SECRET = b"the secret outside"


class Intruder:
    """Acts at the very moment before a name is opened."""

    def __init__(self) -> None:
        self._name = ""
        self._act: Callable[[], object] | None = None
        sys.addaudithook(self._see)

    def wait_for(self, name: str, act: Callable[[], object]) -> None:
        self._name, self._act = name, act

    def leave(self) -> None:
        self._act = None

    def _see(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and self._act is not None and arguments[0] == self._name:
            act, self._act = self._act, None
            act()


INTRUDER = Intruder()


@pytest.fixture
def intruder() -> Iterator[Intruder]:
    yield INTRUDER
    INTRUDER.leave()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_bytes(SECRET)
    (tmp_path / "root" / "folder").mkdir(parents=True)
    (tmp_path / "root" / "folder" / "file").write_bytes(b"old")
    return tmp_path / "root"


def swap_folder(root: Path) -> None:
    (root / "folder").rename(root / "moved")
    (root / "folder").symlink_to(root.parent / "outside")


def swap_file(root: Path) -> None:
    (root / "folder" / "file").unlink()
    (root / "folder" / "file").symlink_to(root.parent / "outside" / "file")


def swap_pipe(root: Path) -> None:
    (root / "folder" / "file").unlink()
    os.mkfifo(root / "folder" / "file")


ACTS: dict[str, Callable[[Workspace], object]] = {
    "read": lambda workspace: workspace.read("folder/file"),
    "write": lambda workspace: workspace.write("folder/file", b"new"),
    "change": lambda workspace: workspace.change("folder/file", lambda data: data + b"!"),
    "delete": lambda workspace: workspace.delete("folder/file"),
    "items": lambda workspace: workspace.items("folder", limit=5),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_a_folder_swapped_for_a_link_is_not_entered(
    root: Path, intruder: Intruder, act: Callable[[Workspace], object]
) -> None:
    intruder.wait_for("folder", lambda: swap_folder(root))

    with pytest.raises(InvalidInput, match="symbolic link"):
        act(Workspace(root))

    assert (root.parent / "outside" / "file").read_bytes() == SECRET


def test_a_file_swapped_for_a_link_is_not_read(root: Path, intruder: Intruder) -> None:
    intruder.wait_for("file", lambda: swap_file(root))

    with pytest.raises(InvalidInput, match="symbolic link"):
        Workspace(root).read("folder/file")


def test_a_file_swapped_for_a_pipe_is_not_waited_for(root: Path, intruder: Intruder) -> None:
    intruder.wait_for("file", lambda: swap_pipe(root))

    with pytest.raises(InvalidInput, match="not a regular file"):
        Workspace(root).read("folder/file")


def test_a_folder_swapped_after_it_was_entered_changes_nothing(
    root: Path, intruder: Intruder
) -> None:
    intruder.wait_for("file", lambda: swap_folder(root))

    assert Workspace(root).read("folder/file") == b"old"


def test_a_folder_swapped_all_the_time_never_leads_outside(root: Path) -> None:
    is_over = threading.Event()

    def swap() -> None:
        while not is_over.is_set():
            swap_folder(root)
            (root / "folder").unlink()
            (root / "moved").rename(root / "folder")

    intruder = threading.Thread(target=swap)
    intruder.start()
    seen: set[bytes] = set()
    for _ in range(400):
        for act in (ACTS["read"], ACTS["change"]):
            try:
                result = act(Workspace(root))
            except WakefulError:
                continue
            if isinstance(result, bytes):
                seen.add(result)
    is_over.set()
    intruder.join()

    assert all(data.rstrip(b"!") == b"old" for data in seen)
    assert os.listdir(root.parent / "outside") == ["file"]
    assert (root.parent / "outside" / "file").read_bytes() == SECRET


def test_a_link_swapped_in_as_the_target_is_replaced_and_not_written_through(root: Path) -> None:
    def swapped(data: bytes) -> bytes:
        swap_file(root)
        return data + b"!"

    Workspace(root).change("folder/file", swapped)

    assert (root.parent / "outside" / "file").read_bytes() == SECRET
    assert not (root / "folder" / "file").is_symlink()
    assert (root / "folder" / "file").read_bytes() == b"old!"


@pytest.mark.parametrize("fault", ["kill", "raise"])
def test_a_crash_before_the_file_is_in_place_leaves_the_old_one(root: Path, fault: str) -> None:
    program = (
        "import sys; from pathlib import Path; from wakeful.workspace import Workspace; "
        "Workspace(Path(sys.argv[1])).write('folder/file', b'new')"
    )

    crashed = subprocess.run(
        [sys.executable, "-c", program, str(root)],
        env={**os.environ, "WAKEFUL_FAIL": f"write-file:{fault}"},
        capture_output=True,
        check=False,
    )

    assert crashed.returncode == (-9 if fault == "kill" else 1)
    assert (root / "folder" / "file").read_bytes() == b"old"
    left = [name for name in os.listdir(root / "folder") if name != "file"]
    assert all(name.endswith(TEMPORARY) for name in left)
    assert len(left) == (1 if fault == "kill" else 0)
    items, count = Workspace(root).items("folder", limit=5)
    assert ([item.name for item in items], count) == (["file"], 1)


def test_a_reader_sees_the_old_file_or_the_new_one(root: Path) -> None:
    workspace, is_over = Workspace(root), threading.Event()
    small, large = b"old", b"n" * 300_000

    def write() -> None:
        while not is_over.is_set():
            workspace.write("folder/file", large)
            workspace.write("folder/file", small)

    writer = threading.Thread(target=write)
    writer.start()
    seen = {workspace.read("folder/file") for _ in range(300)}
    is_over.set()
    writer.join()

    assert seen <= {small, large}


def test_changes_at_the_same_time_are_all_kept(root: Path) -> None:
    def add_lines() -> None:
        for _ in range(10):
            Workspace(root).change("folder/file", lambda data: data + b"x")

    threads = [threading.Thread(target=add_lines) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (root / "folder" / "file").read_bytes() == b"old" + b"x" * 40


def failing(code: int) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (errno.ENOSPC, Transient),
        (errno.EDQUOT, Transient),
        (errno.EMFILE, Transient),
        (errno.EIO, Permanent),
        (errno.EROFS, Permanent),
        (errno.EACCES, Permanent),
    ],
)
def test_a_failing_disk_leaves_the_old_file_and_is_told_in_our_words(
    root: Path, monkeypatch: pytest.MonkeyPatch, code: int, kind: type[WakefulError]
) -> None:
    monkeypatch.setattr(os, "fsync", failing(code))

    with pytest.raises(kind):
        Workspace(root).write("folder/file", b"new")

    assert os.listdir(root / "folder") == ["file"]
    assert (root / "folder" / "file").read_bytes() == b"old"


def test_a_device_is_no_file(root: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only the superuser makes devices")
    os.mknod(root / "null", 0o600 | 0o020000, os.makedev(1, 3))

    with pytest.raises(InvalidInput, match="not a regular file"):
        Workspace(root).read("null")


def test_the_root_may_be_a_link_since_the_operator_chose_it(root: Path) -> None:
    (root.parent / "chosen").symlink_to(root)

    assert Workspace(root.parent / "chosen").read("folder/file") == b"old"


def test_a_system_that_cannot_confine_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "supports_dir_fd", set[object]())

    with pytest.raises(Permanent, match="openat"):
        Workspace(root)


def test_what_vanishes_meanwhile_is_not_found(root: Path, intruder: Intruder) -> None:
    intruder.wait_for("file", (root / "folder" / "file").unlink)

    with pytest.raises(NotFound):
        Workspace(root).read("folder/file")
