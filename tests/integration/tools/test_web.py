"""Pages of the web are read as text, marked as somebody else's words, and never from inside."""

import time

import pytest

from tests.integration.net.receiver import PUBLIC, Network, Resolver, answers, receiving
from tests.unit.tools.calls import failure, make_context
from wakeful.net.client import Client
from wakeful.tools.html_text import text_of
from wakeful.tools.tool import ToolResult
from wakeful.tools.web import LARGEST_PAGE, fetched, web_fetch
from wakeful.vocabulary.clock import SystemClock

PAGE = """<!doctype html><html><head><title>T</title><style>a{}</style></head><body>
<h1>StepResult &amp; more</h1><script>alert("x")</script>
<p>Tea is <b>good</b>, says <a href="https://a.example/x">Ann</a>.</p>
<ul><li>one<li>two</ul><template>hidden <p>too</template><a href="javascript:x">no</a>
</body></html>"""


async def look(status: int, kind: str, body: str = "", headers: str = "") -> ToolResult:
    manner = answers(status, headers=f"content-type: {kind}\r\n{headers}", body=body)
    async with receiving(manner) as receiver:
        network = Network(**{f"at_{PUBLIC.replace('.', '_')}": receiver.port})
        client = Client(SystemClock(), resolver=Resolver([PUBLIC]), dialer=network)
        return await fetched(client, "http://news.example/a")


async def test_a_page_is_its_words_and_somebody_elses():
    result = await look(200, "text/html; charset=utf-8", PAGE)

    assert not result.is_error
    assert result.is_external
    assert (
        "StepResult & more\n\nTea is good, says Ann (https://a.example/x).\n\n- one\n- two\n\nno"
        in result.text
    )
    assert "alert" not in result.text
    assert "hidden" not in result.text


@pytest.mark.parametrize(
    ("status", "kind", "body", "said"),
    [
        (200, "application/json", '{"a": 1}', '{"a": 1}'),
        (200, "text/plain; charset=latin-1", "caf\u00e9", "caf"),
        (200, "text/plain; charset=nonsense", "plain", "plain"),
        (200, "text/plain; charset=zip", "packed", "packed"),
        (200, "text/plain; charset=idna", "named", "named"),
        (200, "text/plain; charset=punycode", "a" * 100_000 + "-" + "b9a" * 100_000, "b9ab9a"),
        (404, "text/plain", "not here", "[404]\nnot here"),
        (200, "image/png", "xxxx", "[200: 4 bytes of image/png, not shown]"),
    ],
)
async def test_other_answers_are_told_as_they_are(status: int, kind: str, body: str, said: str):
    result = await look(status, kind, body)

    assert said in result.text
    assert result.is_external


async def test_a_redirect_is_named_and_not_followed():
    result = await look(302, "text/html", headers="location: http://169.254.169.254/\r\n")

    assert result.is_error
    assert result.text == "[302: the page is elsewhere: http://169.254.169.254/]"
    assert result.is_external


async def test_a_page_without_end_is_cut():
    result = await look(200, "text/plain", "x" * (LARGEST_PAGE + 10))

    assert len(result.text) < LARGEST_PAGE


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/", "http://localhost:1/", "http://[::1]/", "http://169.254.169.254/"]
)
async def test_an_address_that_is_not_public_is_refused(url: str):
    said = await failure(web_fetch, make_context(clock=SystemClock()), url=url)

    assert "leads to an address that is not public" in said


@pytest.mark.parametrize("url", ["ftp://a.example/", "file:///etc/passwd", "http://a b/", "x"])
async def test_what_is_no_address_is_refused(url: str):
    assert "url: must be" in await failure(web_fetch, make_context(), url=url)


@pytest.mark.parametrize(
    "page", ["<a<a<a", "</script></a></head>", "<script>" * 50, "&#xFFFFFFFF;", "<![CDATA[x", "\0"]
)
def test_a_broken_page_breaks_nothing(page: str) -> None:
    assert isinstance(text_of(page), str)


@pytest.mark.parametrize(
    "piece",
    ["<a ", "<a b=", "<!--", "<?", "</", "<a '", "<svg></head>", "<script>x</", "&#9", "<a href=h"],
)
def test_a_page_that_was_made_to_be_hard_is_read_about_as_fast_as_any(piece: str) -> None:
    began = time.process_time()

    text_of(piece * (LARGEST_PAGE // len(piece)))

    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ('<img alt="a > b">c', "c"),
        (f'<img src="data:{"x" * 10_000}">c', "c"),
        ("1 < 2 and 2 <3", "1 < 2 and 2 <3"),
        ("<svg><template></svg>seen", "seen"),
        ("<svg/>seen", "seen"),
        ("a<script>if (a < b) '</p>'</SCRIPT>b", "ab"),
        ("<a href='http://a.example/?b&amp;c'>d</a>", "d (http://a.example/?b&c)"),
        ("a<!-- <p>b --> c", "a c"),
        ("a &lt;b&gt; &#" + "9" * 5_000 + ";", "a &lt;b&gt; &#" + "9" * 5_000 + ";"),
    ],
)
def test_of_a_page_its_readers_words_are_kept(page: str, text: str) -> None:
    assert text_of(page) == text
