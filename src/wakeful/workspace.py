"""An agent's workspace: the one folder its file tools can reach, whatever path they are given.

A path is walked component by component from a descriptor of the folder, and no symbolic link is
followed: there is no moment at which a name could be swapped for one that leads outside.

From: turn, tools, prompts, settings, assembly.
To: vocabulary.
Never: opens anything outside its folder.
"""

import errno
import fcntl
import heapq
import os
import re
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from wakeful.vocabulary.errors import (
    InvalidInput,
    NotFound,
    Overloaded,
    Permanent,
    Transient,
    WakefulError,
)
from wakeful.vocabulary.failpoints import failpoint
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.text import clean

LARGEST_FILE = 10 * 1024 * 1024  # bytes, read or written: as much as may be attached
LONGEST_PATH = 1024  # bytes
LONGEST_NAME = 255  # bytes, of one component
DEEPEST_PATH = 32  # components
TEMPORARY = ".wakeful-tmp"  # suffix of files that are being written; never listed, never named

_REFUSED = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\\\\]")
_FOLDER = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | os.O_RDONLY
# Without blocking: opening a pipe would otherwise wait for whoever writes to it.
_FILE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | os.O_RDONLY
_NEW = getattr(os, "O_NOFOLLOW", 0) | os.O_WRONLY | os.O_CREAT | os.O_EXCL


class Item(Record):
    """One name in a folder."""

    name: str
    is_folder: bool
    size: int
    is_reachable: bool  # False for symbolic links, devices, sockets and pipes


class Workspace:
    """A folder that nothing given to its methods leads out of.

    With `shared`, files and folders of it, nothing else is there.
    """

    def __init__(self, root: Path, shared: Sequence[str] | None = None) -> None:
        if os.open not in os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW"):
            raise Permanent("workspace files need a system that can open below a folder (openat)")
        self._root = root
        self._shared: list[list[str]] | None = None
        if shared is not None:
            self._shared = [_components(one, is_folder=True) for one in shared]

    def read(self, path: str) -> bytes:
        """Return the bytes of a regular file, up to the size limit."""
        *folders, name = self._reached(path)
        with _translated(path), self._folder(folders) as folder:
            return _read_at(folder, name, path)

    def stamp(self, path: str) -> tuple[int, int, int] | None:
        """Return what changes whenever a file does, or None if there is none."""
        *folders, name = self._reached(path)
        try:
            with self._folder(folders) as folder:
                found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def write(self, path: str, data: bytes) -> None:
        """Replace or create a file as a whole: a crash leaves the old one or the new one."""
        *folders, name = self._reached(path)
        with _translated(path), self._lock(), self._folder(folders, is_made=True) as folder:
            _refuse_special(folder, name, path)
            _replace_at(folder, name, data)

    def change(self, path: str, make: Callable[[bytes], bytes]) -> None:
        """Replace a file by what is made of it; no other change comes in between."""
        *folders, name = self._reached(path)
        with _translated(path), self._lock(), self._folder(folders) as folder:
            _replace_at(folder, name, make(_read_at(folder, name, path)))

    def delete(self, path: str) -> None:
        """Delete a regular file."""
        *folders, name = self._reached(path)
        with _translated(path), self._lock(), self._folder(folders) as folder:
            if not _refuse_special(folder, name, path):
                raise NotFound("path", f"there is no file {path!r}")
            os.unlink(name, dir_fd=folder)
            os.fsync(folder)

    def items(self, path: str = "", *, limit: int) -> tuple[list[Item], int]:
        """Return the first `limit` items of a folder by name, and how many there are."""
        folders = _components(path, is_folder=True)
        if folders and not self._leads_on(folders):
            raise _missing(path)
        count = 0

        def names() -> Iterator[os.DirEntry[str]]:
            nonlocal count
            for entry in entries:
                if not entry.name.endswith(TEMPORARY) and self._leads_on([*folders, entry.name]):
                    count += 1
                    yield entry

        with (
            _translated(path or "."),
            self._folder(folders) as folder,
            os.scandir(folder) as entries,
        ):
            first = heapq.nsmallest(limit, names(), key=lambda entry: entry.name)
            return [item for entry in first if (item := _item(entry)) is not None], count

    def _reached(self, path: str) -> list[str]:
        """Return the names to walk to a file; what is not shared is not there."""
        names = _components(path)
        if self._shared is not None and not _is_below(names, self._shared):
            raise _missing(path)
        return names

    def _leads_on(self, names: list[str]) -> bool:
        """Tell whether something that may be reached lies at a path, or below it."""
        if self._shared is None or _is_below(names, self._shared):
            return True
        return any(one[: len(names)] == names for one in self._shared)

    def has_root(self) -> bool:
        return self._root.is_dir()

    @contextmanager
    def _lock(self) -> Generator[None, None, None]:
        """Guard changes of this workspace against each other, over threads and processes."""
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def _folder(self, names: list[str], *, is_made: bool = False) -> Generator[int, None, None]:
        with ExitStack() as opened:

            def entered(descriptor: int) -> int:
                opened.callback(os.close, descriptor)
                return descriptor

            # The root itself is the operator's choice and may be a link.
            folder = entered(os.open(self._root, os.O_RDONLY | os.O_DIRECTORY))
            for name in names:
                if is_made:
                    _make_folder_at(folder, name)
                folder = entered(os.open(name, _FOLDER, dir_fd=folder))
            yield folder


def checked_shared(paths: Sequence[str]) -> tuple[str, ...]:
    """Return what of a workspace is shared with strangers, or refuse the first bad path of it."""
    for path in paths:
        try:
            _components(path, is_folder=True)
        except InvalidInput as error:
            raise InvalidInput("shared_files", error.rule) from None
    return tuple(paths)


def is_shared(path: str, shared: Sequence[str]) -> bool:
    """Tell whether a file lies in what is shared."""
    return _is_below(_components(path), [_components(one, is_folder=True) for one in shared])


def _is_below(names: list[str], shared: Sequence[list[str]]) -> bool:
    return any(names[: len(one)] == one for one in shared)


def _missing(path: str) -> NotFound:
    return NotFound("path", f"there is no {path!r} in the workspace")


def refuse_around(home: Path, root: Path) -> None:
    """Raise for a workspace that the home folder lies in: its token and its settings are secret."""
    if Path(os.path.realpath(home)).is_relative_to(os.path.realpath(root)):
        rule = "must not hold the home folder, where the operator's token and the settings are"
        raise InvalidInput("workspace", rule)


def _components(path: str, *, is_folder: bool = False) -> list[str]:
    """Return the names to walk, or refuse a path that could mean anything else."""
    if len(path) > LONGEST_PATH or len(path.encode("utf-8", "replace")) > LONGEST_PATH:
        raise InvalidInput("path", f"must be at most {LONGEST_PATH} bytes")
    if _REFUSED.search(path):
        raise InvalidInput("path", f"has a character that file names may not have: {path[:80]!r}")
    if path.startswith("/"):
        raise InvalidInput("path", f"must be relative to the workspace, not {path[:80]!r}")
    names = [name for name in path.split("/") if name not in ("", ".")]
    for name in names:
        _check_name(name)
    if len(names) > DEEPEST_PATH:
        raise InvalidInput("path", f"must be at most {DEEPEST_PATH} folders deep")
    if not is_folder and (not names or path.endswith(("/", "/."))):
        raise InvalidInput("path", f"must name a file, not {path[:80]!r}")
    return names


def _check_name(name: str) -> None:
    if name == "..":
        raise InvalidInput("path", "must not contain '..'")
    if len(name.encode()) > LONGEST_NAME:
        raise InvalidInput("path", f"has a name longer than {LONGEST_NAME} bytes")
    if name.endswith(TEMPORARY):
        raise InvalidInput("path", f"must not end in {TEMPORARY!r}")


@contextmanager
def _translated(path: str) -> Generator[None, None, None]:
    """Turn the system's errors into ours, in words that name the path as it was given."""
    try:
        yield
    except OSError as error:
        raise _our_error(error, path) from error


def _our_error(error: OSError, path: str) -> WakefulError:
    match error.errno:
        case errno.ENOENT:
            return _missing(path)
        case errno.ENOTDIR | errno.ELOOP:
            return InvalidInput(
                "path", f"{path!r} leads through a file or a symbolic link, which is not followed"
            )
        case errno.EISDIR | errno.ENXIO | errno.ENODEV:
            return InvalidInput("path", f"{path!r} is not a regular file")
        case errno.ENOSPC | errno.EDQUOT:
            return Transient(f"the disk is full; {path!r} was not changed")
        case errno.EMFILE | errno.ENFILE:
            return Overloaded("too many files are open; nothing was changed")
        case _:
            return Permanent(f"{path!r}: {os.strerror(error.errno or 0)}")


def _read_at(folder: int, name: str, path: str) -> bytes:
    # Looked at first: opening a device may already act on it.
    _refuse_special(folder, name, path)
    descriptor = os.open(name, _FILE, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise InvalidInput("path", f"{path!r} is not a regular file")
        data = file.read(LARGEST_FILE + 1)  # it may have grown since
        if len(data) > LARGEST_FILE:
            raise InvalidInput(
                "path", f"{path!r} has {found.st_size} bytes; the limit is {LARGEST_FILE}"
            )
        return data


def _refuse_special(folder: int, name: str, path: str) -> bool:
    """Refuse anything but a regular file; tell whether there is one."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if stat.S_ISLNK(found.st_mode):
        raise InvalidInput("path", f"{path!r} is a symbolic link, which is not followed")
    if stat.S_ISDIR(found.st_mode):
        raise InvalidInput("path", f"{path!r} is a folder")
    if not stat.S_ISREG(found.st_mode):
        raise InvalidInput("path", f"{path!r} is not a regular file")
    return True


def _make_folder_at(folder: int, name: str) -> None:
    try:
        os.mkdir(name, 0o700, dir_fd=folder)
    except FileExistsError:
        return  # as a folder or not: opening it tells
    os.fsync(folder)


def _replace_at(folder: int, name: str, data: bytes) -> None:
    if len(data) > LARGEST_FILE:
        raise InvalidInput("text", f"a file has at most {LARGEST_FILE} bytes, not {len(data)}")
    temporary = f".{os.urandom(8).hex()}{TEMPORARY}"
    descriptor = os.open(temporary, _NEW, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        failpoint("write-file")
        # Renaming never follows a link at its target: it takes the link's place.
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(temporary, dir_fd=folder)
        raise
    os.fsync(folder)


def _item(entry: os.DirEntry[str]) -> Item | None:
    try:
        found = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None  # deleted meanwhile
    is_folder = stat.S_ISDIR(found.st_mode)
    return Item(
        name=clean(entry.name),
        is_folder=is_folder,
        size=found.st_size,
        is_reachable=is_folder or stat.S_ISREG(found.st_mode),
    )
