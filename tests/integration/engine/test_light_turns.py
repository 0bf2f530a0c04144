"""A turn that sees only itself leaves no trace in what its session's next turns see or measure."""

from tests.integration.engine.looking import shown, turn_of
from wakeful.models.model import Reply
from wakeful.testing.kit import Pause, Scripted, in_memory, operator_draft
from wakeful.vocabulary.kinds import Kind, View
from wakeful.vocabulary.message import Text, Usage

MAIN = "agent:main:main"
BEAT = operator_draft(session_key=MAIN, text="anything to do?", kind=Kind.HEARTBEAT)


def sized(text: str, tokens: int) -> Reply:
    return Reply(
        content=(Text(text=text),), stop_reason="stop", usage=Usage(input=tokens, output=1)
    )


async def test_a_light_turn_sees_only_itself_and_the_next_one_all_of_it():
    model = Scripted(["hello", "nothing", "well"])
    async with in_memory(model) as runtime:
        await turn_of(runtime, await runtime.send("hi"))
        beat = await turn_of(runtime, await runtime.accept(BEAT))
        await turn_of(runtime, await runtime.send("and?"))

    assert beat.view is View.LIGHT
    assert shown(model.requests[1]) == ["user: anything to do?"]
    assert shown(model.requests[2]) == [
        "user: hi",
        "assistant: hello",
        "user: anything to do?",
        "assistant: nothing",
        "user: and?",
    ]


async def test_what_a_light_turn_used_is_not_taken_for_the_size_of_its_session():
    async with in_memory(Scripted([sized("hello", 5000), sized("nothing", 40)])) as runtime:
        await turn_of(runtime, await runtime.send("hi"))
        (before,) = await runtime.store.read(
            "SELECT context_tokens FROM sessions WHERE key NOT LIKE '%:activity'"
        )
        await turn_of(runtime, await runtime.accept(BEAT))
        (after,) = await runtime.store.read(
            "SELECT context_tokens FROM sessions WHERE key NOT LIKE '%:activity'"
        )

    assert before[0] == after[0] == 5001


async def test_a_context_that_is_built_anew_measures_the_same_as_one_that_was_kept():
    """The reply to a light context says nothing of the whole one, however it is read."""
    sizes: list[int] = []

    async def measured(is_kept: bool) -> int:
        model = Scripted([sized("hello", 5000), sized("nothing", 40), "well"])
        async with in_memory(model) as runtime:
            await turn_of(runtime, await runtime.send("hi"))
            await turn_of(runtime, await runtime.accept(BEAT))
            if not is_kept:
                opening = runtime._running.built.followers.dispatcher._runner._opening  # pyright: ignore[reportPrivateUsage]
                opening.contexts._kept.clear()  # pyright: ignore[reportPrivateUsage]
            await turn_of(runtime, await runtime.send("and?"))
            (row,) = await runtime.store.read(
                "SELECT context_tokens FROM sessions WHERE key NOT LIKE '%:activity'"
            )
            return row[0]

    for is_kept in (True, False):
        sizes.append(await measured(is_kept))

    assert sizes[0] == sizes[1]


async def test_nobody_joins_a_turn_that_sees_only_itself():
    pause = Pause("looking around")
    model = Scripted(["hello", pause, "for you"])
    async with in_memory(model) as runtime:
        await turn_of(runtime, await runtime.send("hi"))
        beat = await runtime.accept(BEAT)
        await pause.reached.wait()
        mine = await runtime.send("are you there?")
        pause.go_on.set()
        first = await turn_of(runtime, beat)
        second = await turn_of(runtime, mine)

    assert mine.outcome.value == "queued"
    assert first.id != second.id
    assert second.reply == "for you"
