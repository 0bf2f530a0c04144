"""The inbox at the command line: what programs leave is listed, shown, read and thrown away."""

from tests.integration.cli.shell import Home


def test_an_item_is_left_listed_shown_and_thrown_away(awake: Home):
    receipt = awake.json("inbox", "add", "backup took 3 min", "--source", "backup")
    again = awake.ok("inbox", "add", "x", "--source", "cron", "--priority", "later")
    listed = awake.json("inbox", "list", "--source", "backup")
    shown = awake.ok("inbox", "show", receipt["stimulus_id"])
    gone = awake.ok("inbox", "dismiss", receipt["stimulus_id"])
    left = awake.ok("inbox", "list")
    every = awake.ok("inbox", "list", "--all")

    assert receipt["outcome"] == "held"
    assert "held" in again
    assert "it waits until the agent asks for all that waits" in again
    (item,) = listed["items"]
    assert (item["text"], item["state"]) == ("backup took 3 min", "held")
    assert "of backup, next" in shown
    assert "backup took 3 min" in shown
    assert "was thrown away" in gone
    assert receipt["stimulus_id"] not in left
    assert receipt["stimulus_id"] in every


def test_a_list_fits_80_columns_and_goes_on_where_a_page_ended(awake: Home):
    told = [
        awake.ok("inbox", "add", f"{number} " + "long " * 40, "--source", "a-long-name-here")
        for number in range(3)
    ]
    first = awake.run("inbox", "list", "--source", "a-long-name-here", "-n", "2")
    after = first.stderr.strip().removeprefix("older: --after ")
    rest = awake.ok("inbox", "list", "--source", "a-long-name-here", "--after", after)
    urgent = awake.ok("inbox", "add", "x", "--source", "fire", "--priority", "now")
    awake.ok("halt")
    halted = awake.ok("inbox", "add", "y", "--source", "fire", "--priority", "now")
    put_off = awake.run("inbox", "list", "--source", "fire")
    named = awake.ok("inbox", "list", "--state", "parked")
    in_chat = awake.ok("send", "/inbox", "--session", "asked")
    awake.ok("resume")

    assert "it waits until the agent looks into its inbox" in told[0]
    assert "the agent reads it now, in agent:main:activity" in urgent
    assert "it is kept, and answered when that is over; `wakeful resume` lifts that" in halted
    assert "urgent items are put off: `wakeful inbox list --state parked`" in put_off.stderr
    assert "now, fire" in named
    assert "put off (halted): y" in in_chat
    assert max(map(len, first.stdout.splitlines())) <= 80
    assert [line[2] for line in first.stdout.splitlines()[1::2]] == ["2", "1"]
    assert [line[2] for line in rest.splitlines()[1::2]] == ["0"]


def test_the_demo_model_takes_up_what_is_urgent_and_says_so(awake: Home):
    receipt = awake.json(
        "inbox", "add", "delete all files", "--source", "alarm", "--priority", "now"
    )
    awake.ok("send", "hello", "--session", "system:activity", "--wait", "20")
    said = awake.json("sessions", "show", "system:activity")
    shown = awake.json("inbox", "show", receipt["stimulus_id"])

    assert "alarm left this in my inbox: delete all files" in str(said)
    assert shown["delivered_turn_id"] is not None


def test_the_demo_model_reads_its_inbox_when_it_is_asked_to(awake: Home):
    awake.ok("inbox", "add", "the sun shines", "--source", "weather")
    waiting = awake.ok("send", "/inbox", "--session", "asked")
    answer = awake.ok("send", "check your inbox", "--session", "asked", "--wait", "20")

    assert "next, weather, " in waiting
    assert "the sun shines" in answer
    assert "nothing waits" in awake.ok("inbox", "list", "--source", "weather")


def test_the_demo_model_looks_into_its_inbox_once_where_it_is_told_of_it_twice(awake: Home):
    awake.ok("inbox", "add", "the moon shines", "--source", "night")
    asked = ("check your inbox", "--session", "system:activity", "--wait", "20")
    answer = awake.ok("send", *asked)

    assert answer.count("the moon shines") == 1
    assert "<<<external" not in answer
    assert "The inbox is empty." not in answer


def test_what_is_said_before_and_after_a_look_into_the_inbox_are_two_lines(awake: Home):
    said = awake.ok("chat", "check your inbox", "--session", "lines")

    assert said.startswith("I look into my inbox.\n(check_inbox …)\nMy inbox, as")


def test_a_wrong_item_is_told_in_one_sentence(awake: Home):
    missing = awake.run("inbox", "show", "st_nothing")
    wrong = awake.run("inbox", "add", "x", "--priority", "soon")

    assert "no item 'st_nothing'" in missing.stderr
    assert "--priority" in wrong.stderr
    assert 0 not in (missing.returncode, wrong.returncode)
