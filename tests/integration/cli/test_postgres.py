"""The same command line over PostgreSQL; without a server it says what to do."""

from tests.integration.cli.shell import Home


def test_a_server_on_postgresql_is_used_like_any_other(home: Home, postgres_url: str):
    elsewhere = Home(home.folder, WAKEFUL_DATABASE=postgres_url)

    with elsewhere.up() as server:
        assert server.told["database"] == "PostgreSQL"
        assert elsewhere.json("send", "hello", "--wait", "10")["turn"]["state"] == "done"
        assert elsewhere.json("status")["is_running"]
        assert {one["health"] for one in elsewhere.json("doctor")} == {"ok"}
        assert server.stop() == 0

    assert elsewhere.run("sessions", "list").returncode == 3
    refused = elsewhere.run("backup", "create")
    assert refused.returncode == 1
    assert refused.stderr == "wakeful: the database is PostgreSQL: use pg_dump\n"
    assert not (home.folder / "wakeful.db").exists()
