"""Talking to an agent from a shell."""

import signal
import subprocess
from pathlib import Path

from tests.integration.cli.shell import COMMAND, PATIENCE_S, Home, each


def test_one_message_is_answered(awake: Home):
    said = awake.ok("chat", "hello", "--session", "one")

    assert "I am the demo model" in said


def test_a_conversation_has_many_messages(awake: Home):
    said = awake.ok("chat", "-s", "many", said="hello\n\nwhat time is it?\n")

    assert "I am the demo model" in said
    assert "current_time" in said
    assert awake.json("sessions", "show", "many")["session"]["entries"] > 3


def test_an_answer_can_be_read_by_a_program(awake: Home):
    frames = each(awake.ok("chat", "what time is it?", "-s", "program", "--json").splitlines())

    assert frames[0]["event"] == "receipt"
    assert frames[-1]["event"] == "turn"
    assert frames[-1]["state"] == "done"
    assert {frame["event"] for frame in frames} >= {"delta", "tool"}


def test_a_message_is_sent_and_waited_for(awake: Home):
    receipt = awake.json("send", "hello", "--session", "wait", "--wait", "10")

    assert receipt["turn"]["state"] == "done"
    assert "demo model" in receipt["turn"]["reply"]


def test_a_message_comes_from_standard_input(awake: Home):
    awake.ok("send", "-", "--session", "stdin", said="a line\nand another\n")

    found = awake.json("sessions", "show", "stdin")
    assert found["entries"][0]["body"]["text"] == "a line\nand another\n"


def test_the_same_key_counts_once(awake: Home):
    first = awake.json("send", "hello", "--session", "key", "--dedup-key", "k")
    second = awake.json("send", "hello", "--session", "key", "--dedup-key", "k")

    assert second["outcome"] == "duplicate"
    assert second["duplicate_of"] == first["stimulus_id"]


def test_bad_words_are_refused_with_a_sentence(awake: Home):
    for arguments in (
        ["send", "hi", "--priority", "soon"],
        ["send", "hi", "--session", "~zz"],
        ["send", ""],
    ):
        answer = awake.run(*arguments)

        assert answer.returncode == 2, answer
        assert answer.stderr.startswith("wakeful: ")
        assert answer.stderr.count("\n") == 1


def test_an_interrupt_stops_the_turn(awake: Home):
    awake.ok("halt")
    try:
        talking = awake.start("chat", "hello", "--session", "stop", "--json")
        assert talking.stdout is not None
        receipt = each([talking.stdout.readline()])[0]

        talking.send_signal(signal.SIGINT)
        talking.communicate()
    finally:
        awake.ok("resume")

    assert talking.returncode == 130
    stimuli = awake.json("why", receipt["stimulus_id"])
    assert stimuli["state"] == "cancelled"


def test_two_shells_talk_at_once(awake: Home):
    talking = [awake.start("send", f"hello {n}", "-s", "crowd", "--json") for n in range(4)]

    outputs = [process.communicate()[0] for process in talking]

    assert [process.returncode for process in talking] == [0, 0, 0, 0]
    assert len({each([output.replace("\n", "")])[0]["stimulus_id"] for output in outputs}) == 4


def test_a_command_that_is_sent_is_answered_and_not_waited_for(awake: Home):
    awake.ok("send", "hello", "--session", "told", "--wait", "10")

    said = awake.ok("send", "/stop", "--session", "told", "--wait", "10")
    shown = awake.ok("sessions", "show", "told")

    assert said == "Nothing was running.\n"
    assert "\nnote (command) 20" in shown


def test_a_program_that_talks_is_shown_no_prompt(awake: Home):
    said = awake.ok("chat", "-s", "piped", said="what is 3*4\n")

    assert said == "3*4 = 12\n"


def test_a_halt_does_not_lock_its_conversation(awake: Home):
    said = awake.ok("chat", "-s", "halted", said="/halt\nwhat is 3*4\n/resume\n")

    assert "Halted everything.\n(parked, halted: st_" in said
    told = "it is kept, and answered when that is over; `wakeful resume` lifts that)\nResumed"
    assert told in said


def test_what_waits_for_the_end_of_a_halt_is_counted(awake: Home):
    awake.ok("halt")
    awake.ok("send", "hello", "--session", "counted")
    waiting, told = awake.json("status")["waiting"], awake.ok("status")
    awake.ok("resume")

    assert waiting == 1
    assert "  user in agent:main:counted waits, halted: hello" in told


def test_a_sleep_of_another_length_than_was_said_tells_why(awake: Home):
    awake.ok("send", "hello", "--session", "resting", "--wait", "10")
    moved, kept = awake.ok("sleep", "resting", "10m"), awake.ok("sleep", "resting", "2h")
    awake.ok("send", "good morning", "--session", "resting", "--wait", "10")
    again = awake.ok("wake", "resting")

    assert moved.startswith("resting sleeps for 4m 30s, until ")
    assert "(not what you said: a sleep lasts a minute to a day" in moved
    assert "not what you said" not in kept
    assert again == "resting was not woken: it is awake\n"


def test_the_session_that_was_used_last_is_listed_first(awake: Home):
    awake.ok("send", "hello", "--session", "older", "--wait", "10")
    awake.ok("send", "hello", "--session", "newer", "--wait", "10")
    awake.ok("send", "hello again", "--session", "older", "--wait", "10")

    first, second = (one["key"] for one in awake.json("sessions", "list", "-n", "2")["items"])

    assert (first, second) == ("agent:main:older", "agent:main:newer")


def test_an_entry_is_shown_with_its_id_when_that_is_wanted(awake: Home):
    awake.ok("send", "hello", "--session", "ids", "--wait", "10")
    (entry, *_) = awake.json("sessions", "show", "ids")["entries"]

    assert entry["id"] in awake.ok("sessions", "show", "ids", "--ids")
    assert entry["id"] not in awake.ok("sessions", "show", "ids")


def test_a_topic_that_no_event_has_is_refused(awake: Home):
    answer = awake.run("tail", "--topics", "bogus")

    assert answer.returncode == 2
    assert "no event is called 'bogus'" in answer.stderr


def test_all_that_happened_is_told_and_whoever_stops_reading_is_left_in_peace(awake: Home):
    awake.ok("send", "hello", "--wait", "15")
    answer = subprocess.run(
        ["bash", "-c", f"{' '.join(COMMAND)} tail --since 0 | head -n 2"],
        env=awake.environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )

    assert len(answer.stdout.splitlines()) == 2
    assert "no server" not in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_position_that_means_nothing_is_told_in_words(awake: Home):
    following = awake.start("tail", "--since", "ep_0-7")
    assert following.stderr is not None
    try:
        told = [following.stderr.readline() for _ in range(2)]
    finally:
        following.kill()
        following.communicate()

    assert "following http" in told[0]
    assert "only what is new is shown" in told[1]


def test_a_server_that_refuses_a_file_before_its_end_is_heard(awake: Home, tmp_path: Path):
    large = tmp_path / "large.jsonl"
    large.write_bytes(b"{}\n" * 4_000_000)
    stranger = Home(awake.folder, WAKEFUL_TOKEN="wk_nobody")

    answer = stranger.run("sessions", "import", str(large), "--session", "large")

    assert answer.returncode == 5
    assert "does not know this token" in answer.stderr
