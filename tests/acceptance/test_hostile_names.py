"""Whatever a name looks like, the server opens and makes no file outside its home for it."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest

import wakeful
from tests.integration.http.raw import connected
from tests.server_process import ServerProcess, serving

NAMES = (
    "../../../../../../../../etc/passwd",
    "..",
    ".",
    "/etc/passwd",
    "/tmp/wakeful-was-here",
    "~/wakeful-was-here",
    "../wakeful-was-here",
    "a\0b",
    "%2e%2e%2fwakeful-was-here",
    "\uff0e\uff0e\uff0fwakeful-was-here",
    "\u2024\u2024/wakeful-was-here",
    "..\\..\\wakeful-was-here",
    "C:\\wakeful-was-here",
    "CON",
    "nul.txt",
    "file:///etc/passwd",
    "wakeful.db",
    "x" * 65_536,
)
# Under these the interpreter and the system's libraries lie; they may be read, never written.
LIBRARIES = (
    *(Path(sys.prefix), Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve()),
    Path(wakeful.__file__).resolve().parent,
    *(Path(place) for place in ("/usr", "/lib", "/lib64", "/etc/localtime")),
    Path("/proc/sys/vm"),  # the allocator asks how memory is promised
    Path("/sys/devices/system/cpu"),  # the C library counts processors, now and then
)
READS = ("open", "openat", "openat2")
CHANGES = re.compile(r"O_(?:WRONLY|RDWR|CREAT|TRUNC|APPEND)")
CALL = re.compile(r"^\d+ +(\w+)\((.*)$")
PATHS = re.compile(r'(?:AT_FDCWD<([^>]*)>, |\d+<([^>]*)>, )?"((?:[^"\\]|\\.)*)"')
LOOKS = ("stat", "access", "readlink", "getcwd", "chdir", "statfs", "xattr")  # open nothing


@pytest.fixture
def tracing(tmp_path: Path) -> tuple[str, ...]:
    """The words before a command that have its files noted."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("no strace here (scripts/install-test-tools installs it on Debian)")
    if subprocess.run([strace, "-o", "/dev/null", "true"], check=False, stderr=-3).returncode:
        pytest.skip("strace may not trace here")
    options = (
        "-f",
        "--seccomp-bpf",
        "-qq",
        "-y",
        "-s",
        "300",
        "-e",
        "trace=%file",
        "-e",
        "signal=none",
    )
    return (strace, *options, "-o", str(tmp_path / "trace"))


async def ask(server: ServerProcess, method: str, target: str, body: object = None) -> int:
    """Send one request, as it stands, and return the status of the answer."""
    content = b"" if body is None else msgspec.json.encode(body)
    head = (
        f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    async with connected(server.port) as (reader, writer):
        writer.write(head.encode() + content)
        return int((await reader.readline()).split()[1])


async def ask_everything(server: ServerProcess, name: str) -> set[int]:
    """Put a name wherever a route takes one; return the statuses of the answers."""
    async with server.client() as client:
        document = (await client.get("/openapi.json")).json()
    body = {
        "POST /api/tokens": {"name": name, "scopes": ["read", f"inbox:{name}"]},
        "POST /api/halt": {"agent": name},
        "POST /api/resume": {"agent": name},
        "POST /api/login": {"code": name},
    }
    attachment = {"name": name, "media_type": name, "data": "eA=="}
    message = {"text": name, "source": name, "dedup_key": name, "attachments": [attachment]}
    statuses: set[int] = set()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            label = f"{method.upper()} {path}"
            sent = body.get(label, message if method == "post" and "{key}" in path else None)
            parameters = operation.get("parameters", [])
            asked = [one["name"] for one in parameters if one["in"] == "query"]
            for written in {quote(name, safe=""), quote(name, safe="/.")}:
                target = re.sub(r"\{\w+\}", lambda _, written=written: written, path)
                for query in [f"{word}={written}" for word in asked] or [""]:
                    statuses.add(await ask(server, method.upper(), f"{target}?{query}", sent))
    return statuses


def touched(trace: str, start: int) -> Iterator[tuple[Path, bool]]:
    """Yield each path that was opened or changed from a place in the trace on; True if changed."""
    for line in trace[start:].splitlines():
        call = CALL.match(line)
        if call is None or any(look in call[1] for look in LOOKS):
            continue
        is_change = call[1] not in READS or CHANGES.search(call[2]) is not None
        for cwd, folder, path in PATHS.findall(call[2]):
            yield Path(cwd or folder or "/", path), is_change


def is_inside(path: Path, *folders: Path) -> bool:
    clean = Path(*path.parts)
    return ".." not in clean.parts and any(clean.is_relative_to(folder) for folder in folders)


async def test_no_name_leads_out_of_the_home(tmp_path: Path, tracing: tuple[str, ...]):
    """T13: strace sees every file that is opened."""
    home, trace = tmp_path / "place" / "home", tmp_path / "trace"
    home.parent.mkdir()
    async with serving(home, wrap=tracing) as server:
        await server.say("hello")
        start = trace.stat().st_size
        statuses: set[int] = set()
        for name in NAMES:
            statuses |= await ask_everything(server, name)
            await server.say(f"write {name[:1000]}: wakeful was here")
            await server.say(f"read {name[:1000]}")
        await server.stop()
    paths = list(touched(trace.read_text(), start))

    read = {path for path, is_change in paths if not is_change}
    changed = {path for path, is_change in paths if is_change}
    assert [path for path in read if not is_inside(path, home, *LIBRARIES)] == []
    assert [path for path in changed if not is_inside(path, home)] == []
    assert changed  # else nothing was traced
    assert {file.name for file in home.parent.iterdir()} == {"home", "home.stderr"}
    assert max(statuses) < 500
