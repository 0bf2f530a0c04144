"""What a server answers is told as text, and what is no text is named."""

from typing import Any

import mcp_types as types
import pytest

from wakeful.tools.mcp.results import as_result


def answer(*content: Any, **more: Any) -> str:
    return as_result(types.CallToolResult(content=list(content), **more)).text


def text(words: str) -> types.TextContent:
    return types.TextContent(type="text", text=words)


def test_texts_are_told_one_below_the_other() -> None:
    assert answer(text("a"), text("b")) == "a\nb"
    assert answer() == "done"


def test_structured_content_is_told_where_there_is_no_text() -> None:
    assert answer(structured_content={"a": [1, 2**70]}) == '{"a":[1,"1180591620717411303424"]}'
    assert answer(text("one"), structured_content={"a": 1}) == "one"


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (
            types.ImageContent(type="image", data="AAAA", mime_type="image/png"),
            "[image: image/png, 3 bytes, not shown]",
        ),
        (
            types.AudioContent(type="audio", data="AAA=", mime_type="audio/\nwav"),
            "[audio: audio/ wav, 2 bytes, not shown]",
        ),
        (types.ResourceLink(type="resource_link", uri="file:///a", name="a"), "[resource: file:"),
        (
            types.EmbeddedResource(
                type="resource",
                resource=types.TextResourceContents(uri="file:///a", text="inside"),
            ),
            "[resource: file:///a]\ninside",
        ),
        (
            types.EmbeddedResource(
                type="resource", resource=types.BlobResourceContents(uri="file:///a", blob="AAAA")
            ),
            "[resource: file:///a, not text, not shown]",
        ),
    ],
)
def test_what_is_no_text_is_named(block: Any, said: str) -> None:
    assert said in answer(block)


def test_an_error_stays_one() -> None:
    assert as_result(types.CallToolResult(content=[text("no")], is_error=True)).is_error
