"""A real model is a name, `provider:model`; here a stand-in on this machine answers for it."""

import asyncio
import os
import tempfile
from pathlib import Path

import wakeful
from wakeful.testing.providers.plan import PlannedCall, Step
from wakeful.testing.providers.process import providers


@wakeful.tool(effect="read")
def stock(article: str) -> int:
    """Return how many of an article there are."""
    return {"tea": 12}.get(article, 0)


async def main() -> None:
    # Without OPENAI_BASE_URL this would be OpenAI's own, and need OPENAI_API_KEY.
    agent = wakeful.Agent(model="openai-chat:any-model", tools=[stock])
    async with wakeful.Runtime(agents=[agent]) as runtime:
        # The words in braces tell the stand-in which of its answers are wanted.
        receipt = await runtime.send("How much tea do we have? {count}")
        turn = await runtime.wait(receipt, timeout_s=60)
        assert turn is not None
        print(turn.reply)
        print(f"{turn.tool_calls} tool call, {turn.input_tokens} tokens read")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, providers(Path(folder)) as stand_in:
        look = Step(
            text="I count.", calls=(PlannedCall(name="stock", arguments={"article": "tea"}),)
        )
        stand_in.plan(count=[look, Step(text="Twelve boxes are left.")])
        os.environ["OPENAI_BASE_URL"] = f"http://127.0.0.1:{stand_in.port}/v1"
        asyncio.run(main())
        asked = stand_in.bodies("count")
        print(f"the model was asked {len(asked)} times and told of {len(asked[0]['tools'])} tools")
