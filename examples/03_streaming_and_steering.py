"""Watch a turn as it happens, and join it with a second message before it has ended."""

import asyncio

import wakeful
from wakeful.testing.kit import Scripted, call, says

arrived = asyncio.Event()
answered = asyncio.Event()


@wakeful.tool(effect="read")
async def look_around() -> str:
    """Look around; takes until somebody says something."""
    arrived.set()
    await answered.wait()
    return "nothing but sand"


async def main() -> None:
    model = Scripted(
        [says("Let me look around.", call("look_around")), "There is only sand, but I dig for you."]
    )
    agent = wakeful.Agent(model=model, tools=[look_around])
    async with wakeful.Runtime(agents=[agent]) as runtime:
        events = runtime.subscribe(topics=["turn.*"], since=await runtime.cursor())
        first = await runtime.send("What do you see?")
        await arrived.wait()
        second = await runtime.send("If there is sand, dig!")
        print(f"second message: {second.outcome}")
        answered.set()

        async for event in events:
            print(f"{event.kind:14} {event.data.get('text') or event.data.get('phase', '')}")
            if event.kind == "turn.finished":
                break

        turns = [await runtime.wait(receipt) for receipt in (first, second)]
        print("one turn for both:", len({turn.id for turn in turns if turn}) == 1)


if __name__ == "__main__":
    asyncio.run(main())
