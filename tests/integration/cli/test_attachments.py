"""Files go to an agent from the command line, and come back out of its conversation."""

from pathlib import Path

from tests.integration.cli.shell import Home
from tests.pictures import png


def test_a_file_goes_along_and_can_be_taken_again(awake: Home, tmp_path: Path):
    picture, target = tmp_path / "a cat.png", tmp_path / "taken.png"
    picture.write_bytes(png())

    awake.ok("send", "look", "-s", "files", "--file", str(picture), "--wait", "20")
    listed = awake.json("sessions", "attachments", "files")["items"]
    told = awake.ok("sessions", "take", "files", listed[0]["id"], "-o", str(target))

    assert [(one["name"], one["media_type"]) for one in listed] == [("a cat.png", "image/png")]
    assert target.read_bytes() == png()
    assert told == f"{target} has {len(png())} bytes\n"
    assert "a cat.png  (image/png," in awake.ok("sessions", "attachments", "files")
    shown = awake.ok("sessions", "show", "files")
    assert f"[attached: a cat.png (image/png, {len(png())} bytes), {listed[0]['id']}]" in shown


def test_a_file_alone_is_a_message(awake: Home, tmp_path: Path):
    notes = tmp_path / "notes.txt"
    notes.write_text("buy milk")

    awake.ok("chat", "-s", "alone", "-f", str(notes))

    assert len(awake.json("sessions", "attachments", "alone")["items"]) == 1


def test_a_file_that_is_not_there_is_told_and_nothing_is_sent(awake: Home, tmp_path: Path):
    missing = awake.run("send", "look", "-s", "none", "--file", str(tmp_path / "none.png"))
    unknown = awake.run("sessions", "take", "main", "0" * 16, "-o", str(tmp_path / "x"))

    assert missing.returncode == 1
    assert "none.png: No such file or directory" in missing.stderr
    assert unknown.returncode == 4
    assert list(tmp_path.iterdir()) == []
