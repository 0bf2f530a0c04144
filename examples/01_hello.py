"""Say hello: send a message, wait for the turn it led to, read the transcript."""

import asyncio

import wakeful


async def main() -> None:
    async with wakeful.Runtime() as runtime:  # in memory; give home="~/.wakeful" to keep it
        receipt = await runtime.send("Hello! What are you?")
        print(f"accepted: {receipt.outcome}")

        turn = await runtime.wait(receipt)
        assert turn is not None
        print(f"answered: {turn.reply}")

        again = await runtime.wait(await runtime.send("What time is it?"))
        assert again is not None
        print(f"answered: {again.reply}")
        print(f"with {again.tool_calls} tool call in {again.step} steps")
        print(f"transcript: {len(await runtime.entries())} entries")


if __name__ == "__main__":
    asyncio.run(main())
