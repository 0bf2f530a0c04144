"""Whoever comes from nanobot brings their jobs along with one command."""

import json
from pathlib import Path
from typing import Any

from tests.integration.cli.shell import Home

JOB: dict[str, Any] = {
    "id": "a1",
    "name": "from nanobot",
    "enabled": True,
    "schedule": {"kind": "every", "everyMs": 3_600_000},
    "payload": {"kind": "agent_turn", "message": "look", "sessionKey": "telegram:1"},
}


def written(folder: Path, *jobs: Any) -> str:
    file = folder / "jobs.json"
    file.write_text(json.dumps({"version": 1, "jobs": jobs}))
    return str(file)


def test_jobs_are_taken_over_and_a_second_time_changes_nothing(awake: Home, tmp_path: Path):
    file = written(tmp_path, JOB)
    first = awake.ok("cron", "import", file, "--map", "telegram:1=main")
    again = awake.json("cron", "import", file, "--map", "telegram:1=main")
    shown = awake.json("cron", "show", "from nanobot")
    awake.ok("cron", "rm", shown["id"])

    assert first == "imported  from nanobot\n"
    assert [one["outcome"] for one in again["items"]] == ["unchanged"]
    assert shown["session_key"] == "agent:main:main"


def test_one_bad_job_keeps_all_out_and_says_what_to_do(awake: Home, tmp_path: Path):
    failed = awake.run("cron", "import", written(tmp_path, JOB, "nonsense"), "--map", "x=main")
    kept = awake.json("cron", "list")["items"]

    assert failed.returncode == 1
    assert "bad       from nanobot: say which session stands for 'telegram:1'" in failed.stdout
    assert "bad       #2: it is no object" in failed.stdout
    assert "nothing was imported" in failed.stderr
    assert not any(one["name"] == "from nanobot" for one in kept)


def test_a_file_that_is_none_is_told_in_one_sentence(awake: Home, tmp_path: Path):
    torn = tmp_path / "jobs.json"
    torn.write_text('{"version": 1, "jobs": [{"id": ')
    no_json = awake.run("cron", "import", str(torn))
    nothing = awake.run("cron", "import", str(tmp_path / "none.json"))

    assert "is no whole JSON" in no_json.stderr
    assert "No such file" in nothing.stderr
    assert no_json.returncode == nothing.returncode == 2
