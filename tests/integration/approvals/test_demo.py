"""The demo model asks before it acts, and does it once it may."""

from pathlib import Path

from tests.integration.approvals.asking import after, ended
from wakeful.runtime import Runtime
from wakeful.testing.kit import NO_HEARTBEAT
from wakeful.tools.builtin import optional_tools
from wakeful.turn.agent import Agent


def demo(workspace: Path) -> Runtime:
    agent = Agent(
        tools=optional_tools(),
        workspace=workspace,
        heartbeat=NO_HEARTBEAT,
        approvals={"shell": "ask", "write_file": "ask"},
    )
    return Runtime(agents=[agent])


async def test_the_demo_model_runs_a_command_after_it_was_approved(tmp_path: Path):
    async with demo(tmp_path) as runtime:
        asked = await ended(runtime, await runtime.send("run `echo hello`"))
        said = await runtime.send("/approve 1")
        turn = await after(runtime, 1)

        assert asked.reply == "I run it.\n\nWaiting for approval #1: shell (/approve 1 or /deny 1)."
        assert said.reply == "Approved #1: shell."
        assert (turn.reply or "").startswith("You approved #1, and it was done:\nhello")


async def test_the_demo_model_leaves_what_was_denied(tmp_path: Path):
    async with demo(tmp_path) as runtime:
        await ended(runtime, await runtime.send("write notes.md: buy milk"))
        await runtime.send("/deny 1 not today")
        turn = await after(runtime, 1)

        assert turn.reply == "Approval #1 was denied, so I leave it."
    assert not (tmp_path / "notes.md").exists()


async def test_the_demo_model_asks_and_takes_the_answer(tmp_path: Path):
    async with demo(tmp_path) as runtime:
        asked = await ended(runtime, await runtime.send("ask me which colour I like"))
        turn = await ended(runtime, await runtime.send("blue"))
        again = await ended(runtime, await runtime.send("hello"))

        assert asked.reply == "Tell me: which colour I like?"
        assert turn.reply == "You answered: blue"
        assert (again.reply or "").startswith("Hello!")


async def test_the_demo_model_goes_on_when_a_question_is_left_without_an_answer(tmp_path: Path):
    async with demo(tmp_path) as runtime:
        await ended(runtime, await runtime.send("ask me which colour I like"))
        await runtime.send("/deny 1 no")
        turn = await after(runtime, 1)

        assert turn.reply == "Nobody answered my question, so I go on without."


async def test_who_names_no_number_is_shown_what_may_be_named(tmp_path: Path):
    async with demo(tmp_path) as runtime:
        before = await runtime.send("/approve")
        await ended(runtime, await runtime.send("write notes.md: buy milk"))
        await ended(runtime, await runtime.send("ask me which colour I like"))
        after_asking = await runtime.send("/deny")

        assert before.reply == "Nobody waits for an answer."
        assert after_asking.reply == (
            "#2: Tell me: which colour I like?\n"
            '#1: write_file({"path":"notes.md","text":"buy milk\\n"})'
        )
        assert [one.state for one in await runtime.approvals()] == ["open", "open"]
