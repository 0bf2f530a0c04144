"""What a server knows before it begins to log."""

import json
from pathlib import Path

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
