"""Give an agent a tool: a typed function, decorated."""

import asyncio

import wakeful
from wakeful.testing.kit import Scripted, call, says

PRICES = {"tea": 3, "cake": 5}


@wakeful.tool(effect="read")
def price(article: str) -> int:
    """Return what an article costs."""
    return PRICES[article]


@wakeful.tool(effect="effect")
def order(article: str, count: int = 1) -> str:
    """Order an article; never repeated after a crash."""
    return f"ordered {count} x {article} for {PRICES[article] * count}"


async def main() -> None:
    # A scripted model stands in for a real one, so that this runs without a key.
    model = Scripted(
        [
            says("", call("price", article="tea"), call("price", call_id="2", article="gold")),
            says("", call("order", article="tea", count=2)),
            "Two teas are on their way. We have no gold.",
        ]
    )
    agent = wakeful.Agent("waiter", model=model, tools=[price, order])
    async with wakeful.Runtime(agents=[agent]) as runtime:
        receipt = await runtime.send("Two teas and some gold, please", session="agent:waiter:main")
        turn = await runtime.wait(receipt)
        assert turn is not None
        print(turn.reply)

        for message in model.requests[-1].messages:
            print(f"  {type(message).__name__}: {message.text}")


if __name__ == "__main__":
    asyncio.run(main())
