"""The forecast at the command line: a picture and a table that 80 columns hold."""

from tests.integration.cli.shell import Home

FILE = """
timezone: Europe/Berlin
models: {"openai:my-model": {input: 1.0, output: 4.0, max_output: 8192}}
agents:
  main: {model: demo, proactive: {enabled: true, tick_interval_secs: 3600}}
  an-agent-with-a-long-name: {model: demo, quiet_hours: {start: "22:00", end: "07:00"}}
"""


def settled(home: Home) -> Home:
    """Return a home in which a server has run, with agents that tick and beat."""
    home.folder.mkdir(parents=True)
    (home.folder / "wakeful.yaml").write_text(FILE)
    with home.up():
        home.ok("status")
    return home


def test_a_week_is_drawn_without_a_server(home: Home):
    settled(home)
    files = [home.folder / "wakeful.db", home.folder / "wakeful.db-wal"]
    before = [file.read_bytes() for file in files if file.exists()]

    told = home.ok("forecast", "7d")
    one = home.ok("forecast", "2d", "--agent", "main")
    data = home.json("forecast", "1d")
    refused = [home.run("forecast", *words) for words in (("0d",), ("32d",), ("90m",), ("x",))]

    lines = told.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("from 20")
    picture = next(line for line in lines if line.startswith("main "))
    assert set(picture.split()[1]) <= set("thw*-·")
    assert any(line.split()[:2] == ["main", "tick"] for line in lines)
    assert any(line.startswith("suppressed: ") and "nothing-to-do" in line for line in lines)
    assert "an-agent" not in one
    assert {row["source"] for row in data["rows"]} == {"tick", "heartbeat"}
    assert [one.returncode for one in refused] == [2] * 4
    assert all("days" in one.stderr for one in refused)
    assert [file.read_bytes() for file in files if file.exists()] == before


def test_a_server_says_the_same(awake: Home):
    told = awake.ok("forecast", "1d")

    assert "heartbeat" in told
    assert "nothing-to-do" in told
