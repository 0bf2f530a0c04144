"""MCP servers of a settings file: read with their tokens, refused with file, line and key."""

from pathlib import Path

import pytest

from wakeful.settings.load import Loaded, load_text, reload
from wakeful.settings.problems import BadSettings
from wakeful.tools.tool import Effect

ENVIRONMENT = {"WAKEFUL_HOME": "/srv/wakeful", "TOKEN": "t0p-secret"}


def loaded(text: str, folder: Path = Path("/etc")) -> Loaded:
    return load_text(text, folder / "wakeful.yaml", ENVIRONMENT)


def test_servers_are_read_with_what_their_tools_may_do(tmp_path: Path) -> None:
    (tmp_path / "tickets.token").write_text("abc\n")
    found = loaded(
        """
        mcp_servers:
          notes:
            command: [notes-server, --dir, /srv/notes]
            env: {NOTES_TOKEN: "${TOKEN}"}
            effect: idempotent
            tools:
              search.all: {effect: read, timeout_s: 5}
          tickets: {url: "https://mcp.example.com/mcp", bearer_file: tickets.token}
        agents:
          main: {mcp: [notes, tickets]}
        """,
        tmp_path,
    )

    notes, tickets = found.settings.mcp_servers.values()
    assert notes.command == ("notes-server", "--dir", "/srv/notes")
    assert notes.env == {"NOTES_TOKEN": "t0p-secret"}
    assert (notes.effect_of("search.all"), notes.timeout_of("search.all")) == (Effect.READ, 5)
    assert (notes.effect_of("write"), notes.timeout_of("write")) == (Effect.IDEMPOTENT, 60)
    assert (tickets.bearer, tickets.effect_of("any")) == ("abc", Effect.EFFECT)
    assert found.agents[0].mcp == ("notes", "tickets")


@pytest.mark.parametrize(
    "written",
    [
        "{command: npx, args: [-y, files, /srv]}",
        "{command: [npx, -y], args: [files, /srv]}",
        "{command: [npx, -y, files, /srv]}",
    ],
)
def test_a_command_is_read_as_other_programs_write_it(written: str) -> None:
    found = loaded(f"mcp_servers: {{files: {written}}}")

    assert found.settings.mcp_servers["files"].words == ("npx", "-y", "files", "/srv")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "agents: {main: {mcp: [nots]}}\nmcp_servers: {notes: {command: [x]}}",
            ":1: agents.main.mcp[0]: must be one of the mcp_servers (notes), not 'nots'",
        ),
        (
            "mcp_servers:\n  notes:\n    comand: [x]",
            ":3: mcp_servers.notes.comand: unknown key; did you mean 'command'?",
        ),
        ("mcp_servers:\n  notes: {}", ":2: mcp_servers.notes: needs either 'url' or 'command'"),
        (
            "mcp_servers: {n: {command: [x], effect: write}}",
            ":1: mcp_servers.n.effect: must be one of read, idempotent, effect, not text 'write'",
        ),
        (
            "mcp_servers: {n: {command: [x], tools: {a.b: {timeout_s: 0}}}}",
            ":1: mcp_servers.n.tools.a.b.timeout_s: must be from 0.1 to 3600, not 0.0",
        ),
        (
            'mcp_servers: {n: {url: "http://10.0.0.1/"}}',
            ":1: mcp_servers.n.url: has an address that is not public; 'allow_private: true'",
        ),
        (
            'mcp_servers: {n: {url: "https://x.example", bearer: t, bearer_file: f}}',
            ":1: mcp_servers.n.bearer_file: must not be given together with 'mcp_servers.n.bearer'",
        ),
        (
            "mcp_servers: {n: {command: npx -y files}}",
            ":1: mcp_servers.n.command: must be a list of words, or the program alone with",
        ),
        (
            "mcp_servers: {n: {command: npx, args: files}}",
            ":1: mcp_servers.n.args: must be a list",
        ),
        (
            "mcp_servers: {n: {command: 7}}",
            ":1: mcp_servers.n.command: must be text or a list",
        ),
        (
            "mcp_servers: {n: {command: [x], env: {PORT: 8080}}}",
            ":1: mcp_servers.n.env.PORT: must be text, not a whole number",
        ),
    ],
)
def test_a_bad_server_is_told_with_file_line_key_and_rule(text: str, told: str) -> None:
    with pytest.raises(BadSettings) as bad:
        loaded(text)

    assert str(bad.value.problems[0]).startswith(f"/etc/wakeful.yaml{told}")
    assert "8080" not in str(bad.value)


def test_a_token_exchanged_in_its_file_is_noticed(tmp_path: Path) -> None:
    token, file = tmp_path / "t", tmp_path / "wakeful.yaml"
    token.write_text("old")
    file.write_text('mcp_servers: {n: {url: "https://x.example/mcp", bearer_file: t}}\n')
    before = load_text(file.read_text(), file, ENVIRONMENT)
    token.write_text("new")

    after, seen = reload(before, ENVIRONMENT)

    assert seen.changed == ("mcp_servers",)
    assert after.settings.mcp_servers["n"].bearer == "new"
