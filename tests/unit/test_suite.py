"""Promises about the tests themselves: no luck, no naps, nothing that outlives them."""

import ast
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.sources import TESTS, trees

# A test waits for an event or moves the clock. These let real time pass, each for its reason.
SLEEPS = {
    "acceptance/test_exhaustion.py": (1, "measures what a second costs a server that is flooded"),
    "acceptance/test_moved_clocks.py": (1, "a suspended machine is away for a while"),
    "conformance/engine/test_passing_failures.py": (1, "a manual clock, which calls its own"),
    "conformance/engine/test_retention.py": (1, "a manual clock, which calls the one it extends"),
    "integration/engine/stages.py": (1, "a manual clock, which calls the one it extends"),
    "integration/tools/lying_mcp_server.py": (1, "a server that never answers"),
    "integration/turn/test_interrupts_in_flight.py": (1, "a tool that blocks its thread"),
    "postgres_server.py": (1, "a database that starts tells nobody when it is ready"),
    "unit/operations/test_watchdog.py": (2, "a watchdog looks at real time"),
    "unit/store/test_writer.py": (1, "a write that takes a while"),
    "unit/vocabulary/test_clock.py": (6, "clocks are what is tested"),
    "waiting.py": (2, "for what no event tells of; everybody else calls it"),
}
# Whoever lacks one of these is told what was not tested, and why; nothing else may be skipped.
SKIPS = {
    "acceptance/test_docs.py": 1,  # a container engine
    "acceptance/test_failing_disk.py": 1,  # strace
    "acceptance/test_hostile_names.py": 2,  # strace, and the right to trace
    "acceptance/test_killed_migrations.py": 1,  # Linux
    "acceptance/test_kills.py": 1,  # strace
    "browser/chromium.py": 1,  # Chromium
    "integration/cli/test_budgets.py": 1,  # Linux
    "integration/http/test_slow_readers.py": 1,  # curl
    "integration/http/test_vanished_readers.py": 1,  # a network of one's own
    "integration/net/test_client.py": 1,  # openssl
    "integration/net/test_proxies.py": 1,  # openssl
    "integration/store/test_failing_disk.py": 2,  # strace; a small file system
    "integration/tools/test_workspace.py": 1,  # the superuser, who makes devices
    "unit/test_public_names.py": 1,  # Linux
}
FORGIVENESS = re.compile(r"flaky|rerun|reruns|repeat_until|max_runs", re.I)
STARTS = {"Popen", "create_subprocess_exec", "create_subprocess_shell"}


def sources() -> list[tuple[str, ast.Module]]:
    """Return every file of the tests; the proofs are tools, and live by real time."""
    return [(name, tree) for name, tree in trees(TESTS).items() if not name.startswith("proofs/")]


def calls(tree: ast.Module, *names: str) -> Iterator[ast.Call]:
    """Yield the calls of functions or methods with a name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called(node) in names:
            yield node


def called(node: ast.Call) -> str:
    match node.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


def is_nap(call: ast.Call) -> bool:
    """Tell whether a call lets time pass: not one that only lets others run."""
    match call:
        case ast.Call(func=ast.Attribute(attr="sleep") | ast.Name(id="sleep"), args=[only]):
            return not (isinstance(only, ast.Constant) and only.value == 0)
        case ast.Call(func=ast.Attribute(attr="wait", value=ast.Call() as made), args=[_]):
            return called(made) == "Event"  # nobody can set it
        case _:
            return False


def test_nobody_sleeps_without_a_reason():
    found = Counter(
        name for name, tree in sources() for call in calls(tree, "sleep", "wait") if is_nap(call)
    )

    assert found == Counter({name: count for name, (count, _) in SLEEPS.items()})


def test_no_test_is_skipped_but_for_what_a_machine_may_lack():
    found = Counter(name for name, tree in sources() for _ in calls(tree, "skip", "skipif"))

    assert found == Counter(SKIPS)


def test_every_skip_gives_its_reason():
    silent = [
        f"{name}:{call.lineno}"
        for name, tree in sources()
        for call in calls(tree, "skip", "skipif")
        if not (call.args and called(call) == "skip")
        and not any(keyword.arg == "reason" for keyword in call.keywords)
    ]

    assert silent == []


def test_no_test_is_forgiven_a_failure():
    forgiven = [
        f"{name}:{node.lineno}"
        for name, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and FORGIVENESS.search(node.attr)
    ]
    expected = [name for name, tree in sources() if any(calls(tree, "xfail"))]
    configured = FORGIVENESS.search((TESTS.parent / "pyproject.toml").read_text(encoding="utf-8"))

    assert (forgiven, expected, configured) == ([], [], None)


def test_whoever_is_started_ends_with_whoever_started_it():
    orphans = [
        f"{name}:{call.lineno}"
        for name, tree in sources()
        for call in calls(tree, *STARTS)
        if not any(keyword.arg == "preexec_fn" for keyword in call.keywords)
    ]

    assert [place.partition(":")[0] for place in orphans] == ["children.py"]  # the starter itself,
    # which may be started by any thread, and ends with its socket


@pytest.mark.parametrize("name", sorted(SLEEPS.keys() | SKIPS.keys()))
def test_what_is_excused_exists(name: str):
    assert (TESTS / name).exists()
