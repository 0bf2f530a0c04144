"""A settings file names an MCP server, and a conversation uses it."""

import json

from tests.integration.cli.shell import Home
from tests.integration.tools.mcp_serving import lying


def test_a_server_of_the_settings_is_used_and_its_state_is_told(home: Home):
    home.folder.mkdir(mode=0o700)
    servers = {"notes": {"command": lying("fine")}, "gone": {"command": ["/no/such/program"]}}
    settings = {"mcp_servers": servers, "agents": {"main": {"mcp": ["notes", "gone"]}}}
    (home.folder / "wakeful.yaml").write_text(json.dumps(settings))  # which is YAML, too

    with home.up() as server:
        said = home.ok("chat", "use notes_fine")
        shown = home.json("agents", "show", "main")
        status = home.ok("status")
        assert server.stop() == 0

    assert "The tool notes_fine says:\n" in said
    assert "\nfine\n" in said
    assert (home.folder / "mcp" / "notes").is_dir()  # where it runs, not beside the token
    assert [(one["name"], one["state"]) for one in shown["mcp"]] == [
        ("notes", "up"),
        ("gone", "down"),
    ]
    assert "MCP server gone is down: " in status
    assert "/no/such/program: No such file" in status
    assert "MCP server notes" not in status
