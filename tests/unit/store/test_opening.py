import sys
from pathlib import Path

import pytest

from wakeful.store.opening import is_postgres, open_store
from wakeful.vocabulary.clock import ManualClock
from wakeful.vocabulary.errors import StoreBusy, StoreRefused

NOWHERE = "postgresql://nobody@127.0.0.1:1/none"


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("postgresql://user@host/name", True),
        ("postgres://host", True),
        ("wakeful.db", False),
        (Path("postgresql:"), False),
        (None, False),
    ],
)
def test_an_address_says_which_database_it_is(address: str | Path | None, expected: bool) -> None:
    assert is_postgres(address) is expected


@pytest.mark.parametrize("kind", ["text", "path", "memory"])
async def test_sqlite_is_opened_by_its_path(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "wakeful.db"
    address = {"text": str(path), "path": path, "memory": None}[kind]

    store = await open_store(address, clock=ManualClock())
    found = await store.read("SELECT count(*) FROM schema")
    await store.close()

    assert found == [(1,)]
    assert path.exists() is (kind != "memory")


async def test_postgresql_is_opened_by_its_url() -> None:
    with pytest.raises(StoreBusy, match="cannot be reached"):
        await open_store(NOWHERE, clock=ManualClock())


async def test_a_missing_driver_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "wakeful.store.postgres", raising=False)
    for name in [name for name in sys.modules if name.startswith("wakeful.store.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "asyncpg", None)

    with pytest.raises(StoreRefused, match=r"wakeful\[postgres\]"):
        await open_store(NOWHERE, clock=ManualClock())
