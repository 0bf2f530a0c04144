"""What a server knows, and does, before it begins to log."""

import json
import stat
from pathlib import Path

from wakeful.cli.begin import make_home
from wakeful.cli.up import secrets_of
from wakeful.settings.load import load


def test_the_secrets_of_mcp_servers_are_kept_out_of_the_log(tmp_path: Path):
    elsewhere = {"bearer": "bearer-canary", "headers": {"X-Key": "header-canary", "X-Team": "red"}}
    command = {"command": ["notes"], "env": {"NOTES_API_KEY": "variable-canary", "LEVEL": "debug"}}
    servers = {"a": {"url": "https://a.example/mcp", **elsewhere}, "b": command}
    file = tmp_path / "wakeful.yaml"
    file.write_text(json.dumps({"mcp_servers": servers}))  # which is YAML, too

    secrets = secrets_of(load(file, {"WAKEFUL_HOME": str(tmp_path)}), {})

    assert {"bearer-canary", "header-canary", "variable-canary"} <= set(secrets)
    assert not {"red", "debug"} & set(secrets)


def test_a_folder_that_somebody_made_for_us_is_closed(tmp_path: Path):
    tmp_path.chmod(0o755)
    (tmp_path / "environment").touch()

    assert make_home(tmp_path) is False
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_a_folder_that_holds_something_else_is_left_as_it_is(tmp_path: Path):
    tmp_path.chmod(0o755)
    (tmp_path / "photos").mkdir()

    assert make_home(tmp_path) is False
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
