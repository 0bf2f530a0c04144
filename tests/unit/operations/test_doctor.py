"""The doctor finds what is wrong and mends only what cannot hurt."""

import socket
import stat
from pathlib import Path

import msgspec
import pytest

from wakeful.automations.wishes import Wish
from wakeful.operations.doctor import Condition, Finding, Installation, examine
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.store.migrations import packaged
from wakeful.store.opening import open_store
from wakeful.testing.kit import in_memory
from wakeful.timers import timers
from wakeful.timers.timers import Timer
from wakeful.vocabulary.automation import EverySchedule
from wakeful.vocabulary.clock import ManualClock, SystemClock


def patient(home: Path) -> Installation:
    return Installation(
        home=home,
        address="sqlite",
        database=home / "wakeful.db",
        host="127.0.0.1",
        port=0,
        is_running=False,
    )


def found(home: Path, subject: str, *, fix: bool = False, **changes: object) -> Finding:
    who = msgspec.structs.replace(patient(home), **changes)
    return next(one for one in examine(who, SystemClock(), fix=fix) if one.subject == subject)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    async with Runtime(home=tmp_path / "home") as runtime:
        await runtime.wait(await runtime.send("hello"))
    return tmp_path / "home"


def test_a_healthy_home_has_nothing_to_mend(home: Path):
    findings = list(examine(patient(home), SystemClock()))

    assert [one for one in findings if one.health is not Condition.OK] == []
    assert {one.subject for one in findings} >= {"home", "files", "token", "disk", "database"}
    assert {one.subject for one in findings} >= {"clock", "sqlite", "log", "server"}


def test_a_database_of_this_release_has_its_newest_schema(home: Path):
    newest = packaged()[-1].number

    assert found(home, "database").told.endswith(f"schema {newest} of {newest}")


def test_a_missing_home_is_made_only_on_request(tmp_path: Path):
    home = tmp_path / "new"

    assert found(home, "home").health is Condition.WARNING
    assert not home.exists()
    assert found(home, "home", fix=True).health is Condition.FIXED
    assert mode(home) == 0o700


def test_open_doors_are_found_and_closed(home: Path):
    home.chmod(0o775)
    (home / "wakeful.db").chmod(0o644)

    assert found(home, "home").health is Condition.BROKEN
    assert found(home, "files").told.startswith("wakeful.db: others can read")

    assert found(home, "home", fix=True).health is Condition.FIXED
    assert found(home, "files", fix=True).health is Condition.FIXED
    assert (mode(home), mode(home / "wakeful.db")) == (0o700, 0o600)


def test_a_home_whose_names_others_can_see_is_no_defect(home: Path):
    home.chmod(0o755)

    finding = found(home, "home")

    assert finding.health is Condition.WARNING
    assert f"`chmod 700 {home}`" in finding.told
    assert found(home, "files").health is Condition.OK


def test_a_home_that_is_a_file_is_told(tmp_path: Path):
    (tmp_path / "home").write_text("")

    assert found(tmp_path / "home", "home", fix=True).health is Condition.BROKEN


def test_a_damaged_database_is_told_with_the_way_back(home: Path):
    database = home / "wakeful.db"
    content = bytearray(database.read_bytes())
    content[4096 * 2 : 4096 * 3] = b"\xff" * 4096
    database.write_bytes(content)

    told = found(home, "database", fix=True)

    assert told.health is Condition.BROKEN
    assert "backup" in told.told
    assert database.read_bytes() == content


def test_a_clock_that_went_back_is_noticed(home: Path):
    early = next(
        one
        for one in examine(patient(home), ManualClock(1_750_000_000_000))
        if one.subject == "clock"
    )
    unset = next(one for one in examine(patient(home), ManualClock(0)) if one.subject == "clock")

    assert (early.health, unset.health) == (Condition.WARNING, Condition.BROKEN)


async def test_a_dead_timekeeper_is_noticed(home: Path):
    store = await open_store(home / "wakeful.db", clock=SystemClock())
    due_at = SystemClock().now() - 200_000
    timer = Timer(id="t", due_at=due_at, kind="stimulus", target="agent:main:main")
    await store.transact(lambda tx: timers.put(tx, timer))
    await store.close()

    assert found(home, "timers", is_running=True).health is Condition.BROKEN


async def test_an_inbox_that_nobody_reads_is_told(home: Path):
    store = await open_store(home / "wakeful.db", clock=SystemClock())
    write = "UPDATE inbox_counts SET waiting = 1001 WHERE source = ''"
    await store.transact(lambda tx: tx.run(write))
    await store.close()

    told = found(home, "inbox")

    assert told.health is Condition.WARNING
    assert "1001 items wait; `wakeful inbox list`" in told.told


async def test_automations_that_failed_too_often_are_told(home: Path):
    async with in_memory(settings=Settings(home=home)) as runtime:
        for name in ("first", "second", "third"):
            every = EverySchedule(every_s=3_600)
            wish = Wish(name=name, schedule=every, message="x", session_key="main")
            await runtime.add_automation(wish)
        well = found(home, "automations")
        await runtime.store.transact(lambda tx: tx.run(GIVE_UP))
    ill = found(home, "automations")

    assert (well.health, well.told) == (Condition.OK, "3 are on")
    assert ill.health is Condition.WARNING
    assert ill.told.startswith("'first' and 1 more failed too often: off; ")


GIVE_UP = (
    "UPDATE automations SET enabled = 0, disabled_reason = 'failures', next_run_at = NULL "
    "WHERE name <> 'third'"
)


def test_a_taken_port_is_told(home: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        assert found(home, "server", port=port).health is Condition.BROKEN
        assert found(home, "server", port=port, is_running=True).health is Condition.OK


def test_a_model_whose_window_nobody_knows_is_told_with_the_key_to_set(tmp_path: Path):
    tmp_path.chmod(0o700)

    guessed = found(tmp_path, "models", windows={"openai:gpt-4": 8_192, "ollama:llama3": None})
    known = found(tmp_path, "models", windows={"openai:gpt-4": 8_192})

    assert guessed.health is Condition.WARNING
    assert "128000 tokens are assumed for ollama:llama3;" in guessed.told
    assert 'models."ollama:llama3".context_window' in guessed.told
    assert (known.health, known.told) == (Condition.OK, "openai:gpt-4 reads 8192")


def test_a_program_of_an_mcp_server_that_is_missing_is_told(tmp_path: Path):
    tmp_path.chmod(0o700)

    missing = found(tmp_path, "mcp", commands={"notes": "/no/such/program", "shop": "sh"})
    there = found(tmp_path, "mcp", commands={"shop": "sh"})

    assert missing.health is Condition.BROKEN
    assert "notes (/no/such/program)" in missing.told
    assert "shop" not in missing.told
    assert there.health is Condition.OK


async def test_a_session_of_another_release_is_named(home: Path):
    assert found(home, "sessions").health is Condition.OK
    store = await open_store(home / "wakeful.db", clock=SystemClock())
    spoilt = "UPDATE sessions SET queue = '{\"mode\":\"x\"}' WHERE key LIKE '%:main'"
    await store.transact(lambda tx: tx.run(spoilt))
    await store.close()

    finding = found(home, "sessions")

    assert finding.health is Condition.BROKEN
    assert finding.told.startswith("sessions.queue of 'agent:main:main' cannot be read")
    assert finding.told.endswith("or `wakeful sessions rm` it")


@pytest.mark.parametrize(
    ("is_public", "health", "told"),
    [
        (False, Condition.WARNING, "only this machine reaches 127.0.0.1; for senders elsewhere"),
        (True, Condition.OK, "from wherever the server is reached"),
    ],
)
def test_hooks_that_nobody_outside_can_reach_are_told(
    home: Path, is_public: bool, health: Condition, told: str
):
    finding = found(home, "hooks", hooks=("github", "shop"), is_public=is_public)

    assert finding.health is health
    assert finding.told.startswith("github, shop: ")
    assert told in finding.told
