"""Names of zones, and the version of what is known of them."""

import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import tzdata

from wakeful.automations import zones
from wakeful.automations.cron import cron_times
from wakeful.automations.schedules import checked, next_after
from wakeful.automations.zones import data_version, may_recompute, name_of, zone_named
from wakeful.vocabulary import wall
from wakeful.vocabulary.automation import CronSchedule
from wakeful.vocabulary.errors import InvalidInput

NOW = round(datetime(2026, 6, 1, 12, tzinfo=UTC).timestamp() * 1000)
BERLIN = "Europe/Berlin"
HOUR_MS = 3_600_000


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Zone files of a machine, as this process finds them for the length of a test."""
    before = zoneinfo.TZPATH
    zoneinfo.reset_tzpath([str(tmp_path)])
    _forget()
    yield tmp_path
    zoneinfo.reset_tzpath(before)
    _forget()


def _forget() -> None:
    ZoneInfo.clear_cache()
    cron_times.cache_clear()
    data_version.cache_clear()


def put(folder: Path, name: str, like: str = BERLIN) -> None:
    data = Path(tzdata.__file__).parent / "zoneinfo" / like
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data.read_bytes())


@pytest.mark.parametrize(
    "name",
    ["", "Mars/Base", "Europe", "../UTC", "/etc/localtime", "localtime", "right/UTC", "posix/UTC",
     "Factory", "tzdata.zi", "zone.tab", "a\0b", "x" * 5000, "UTC+1", "local", "user"],
)  # fmt: skip
def test_what_no_zone_is_called_is_refused(name: str):
    with pytest.raises(InvalidInput, match="tz: must be an IANA name"):
        zone_named(name, "tz")


def test_the_users_zone_is_stored_by_its_name():
    assert name_of(ZoneInfo(BERLIN), "tz") == BERLIN
    assert name_of(UTC, "tz") == "UTC"
    with pytest.raises(InvalidInput, match="tz: must be given"):
        name_of(timezone(timedelta(hours=1)), "tz")


def test_the_machines_zone_is_stored_by_its_name(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("TZ", raising=False)

    name = name_of(None, "tz")

    assert wall.local(NOW, ZoneInfo(name)).utcoffset() == wall.local(NOW, None).utcoffset()


@pytest.mark.parametrize(
    ("given", "name"), [("Asia/Tokyo", "Asia/Tokyo"), (":Asia/Tokyo", "Asia/Tokyo"), ("", "UTC")]
)
def test_the_environment_may_name_the_machines_zone(
    given: str, name: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TZ", given)

    assert checked(CronSchedule(expr="0 0 * * *"), NOW, None) == CronSchedule(
        expr="0 0 * * *", tz=name
    )


def test_a_machine_whose_zone_has_no_name_must_be_told_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")

    with pytest.raises(InvalidInput, match="must be an IANA name"):
        checked(CronSchedule(expr="0 0 * * *"), NOW, None)
    assert checked(CronSchedule(expr="0 0 * * *", tz=BERLIN), NOW, None)


def test_a_machine_names_its_zone_by_a_link_or_beside_a_copy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: Path
):
    monkeypatch.delenv("TZ", raising=False)
    link, name_file = tmp_path / "etc" / "localtime", tmp_path / "etc" / "timezone"
    link.parent.mkdir()
    monkeypatch.setattr(zones, "LINK", link)
    monkeypatch.setattr(zones, "NAME_FILE", name_file)
    put(tmp_path / "zoneinfo", BERLIN)
    put(folder, BERLIN)

    assert name_of(None, "tz") == "UTC"  # nothing is set
    link.symlink_to(tmp_path / "zoneinfo" / BERLIN)
    assert name_of(None, "tz") == BERLIN
    link.unlink()
    put(tmp_path, "etc/localtime")
    with pytest.raises(InvalidInput, match="tz: must be given"):
        name_of(None, "tz")
    name_file.write_text(f"{BERLIN}\n")
    assert name_of(None, "tz") == BERLIN
    put(tmp_path, "etc/localtime", like="Asia/Tokyo")  # the copy has changed, the name has not
    with pytest.raises(InvalidInput, match="tz: must be given"):
        name_of(None, "tz")


def test_the_version_is_that_of_the_files_a_zone_comes_from(folder: Path):
    put(folder, BERLIN)
    (folder / "tzdata.zi").write_text("# version 2031c\n# This zic input file\n")

    assert data_version(BERLIN) == "2031c"
    assert data_version("Asia/Tokyo") == tzdata.IANA_VERSION  # the folder does not have it


def test_some_machines_have_the_version_in_a_file_of_its_own(folder: Path):
    put(folder, BERLIN)
    (folder / "+VERSION").write_text("2030a\n")

    assert data_version(BERLIN) == "2030a"


def test_files_may_not_tell_their_version(folder: Path):
    put(folder, BERLIN)

    assert data_version(BERLIN) is None


def test_a_schedule_follows_the_data_of_its_process(folder: Path):
    """F17: a zone may be given other rules; a process with new data goes by them."""
    noon = CronSchedule(expr="0 12 * * *", tz=BERLIN)
    before = next_after(noon, NOW)

    put(folder, BERLIN, like="Asia/Tokyo")
    _forget()  # as a new process would

    assert before == NOW + 22 * HOUR_MS
    assert next_after(noon, NOW) == NOW + 15 * HOUR_MS


@pytest.mark.parametrize(
    ("stored", "ours", "may"),
    [
        ("2026a", "2026a", True),
        ("2026a", "2026b", True),
        ("2026b", "2026a", False),
        ("2025z", "2026a", True),
        ("2026a", "2025z", False),
        (None, "2020a", True),
        (None, None, True),
        ("2020a", None, False),
    ],
)
def test_older_zone_data_never_undo_what_newer_decided(
    stored: str | None, ours: str | None, may: bool
):
    assert may_recompute(stored, ours) is may
