"""The page at `/` signs a browser in, talks, and shows hostile text as text."""

from playwright.async_api import BrowserContext, Page

from tests.browser.chromium import chromium
from tests.integration.http.serving import House, house
from wakeful.cli.tokens import login_link
from wakeful.models.scripted import Pause, call, says
from wakeful.vocabulary.errors import Permanent

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"
WAITS = "Waiting for approval #2: write_file (/approve 2 or /deny 2)."


async def link_to(home: House) -> str:
    async with home.client(home.operator) as operator:
        made = (await operator.post("/api/login/code")).json()
    return login_link(home.url, made["code"])


def watch(page: Page) -> list[str]:
    """Collect whatever the page should not have done."""
    wrong: list[str] = []
    page.on("dialog", lambda dialog: wrong.append(f"dialog: {dialog.message}"))
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("console", lambda said: wrong.append(said.text) if "Security" in said.text else None)
    return wrong


async def test_a_link_signs_in_once_and_the_agent_answers_in_the_page():
    """T17: what a model says is text, and never a tag."""
    async with house(lambda _: HOSTILE) as home, chromium() as context:
        page = await context.new_page()
        wrong = watch(page)
        link = await link_to(home)
        await page.goto(link)
        await page.wait_for_selector("body.awake")
        address = page.url
        await page.fill("#text", HOSTILE)
        await page.press("#text", "Enter")
        await page.wait_for_selector("#chat li:nth-child(2):not(.waiting)")
        await page.get_by_text("turn.finished").wait_for()
        said = await page.locator("#chat li").all_inner_texts()
        await context.clear_cookies()
        await page.goto("about:blank")
        await page.goto(link)
        await page.wait_for_selector("#outside:not([hidden])")
        told = await page.inner_text("#state")

    assert address == f"{home.url}/"
    assert said == [HOSTILE, HOSTILE]
    assert told == "this link was used before, or is too old"
    assert wrong == []


# Each tries to run something, to lead somewhere or to fetch something from elsewhere.
PAYLOADS = (
    "<svg/onload=alert(3)>",
    "<iframe srcdoc='<script>parent.alert(4)</script>'></iframe>",
    "<a href=javascript:alert(5)>x</a><form action=//evil.test><button>go</button></form>",
    "<style>@import '//evil.test/a.css'</style><link rel=stylesheet href=//evil.test/b.css>",
    "<base href=//evil.test/><meta http-equiv=refresh content='0;url=//evil.test/'>",
    "[x](javascript:alert(6)) [y](data:text/html,<script>alert(7)</script>)",
    "![z](//evil.test/p.png)",
    "</li></ul><script src=//evil.test/c.js></script>",
    "`<b>` **<img src=//evil.test/q.png>** \n```\n</code></pre><script>alert(8)</script>\n```",
    "{{constructor.constructor('alert(9)')()}} ${alert(10)} \u2028alert(11)",
)


async def test_whatever_is_said_asked_for_or_goes_wrong_is_text_in_the_page():
    """T17: as words of people, of models, of tools, as names and as errors."""
    attack = "\n\n".join([*PAYLOADS, HOSTILE])
    using = says(attack, call(PAYLOADS[0], call_id="1", word=attack))
    script = [attack, using, "then", Permanent(attack)]
    async with house(script) as home, chromium() as context:
        page = await signed_in(context, home)
        wrong = watch(page)
        page.on("request", lambda asked: _note_foreign(asked.url, home.url, wrong))
        for number, payload in enumerate([attack, "use a tool", "fail"], start=1):
            await page.fill("#text", payload)
            await page.press("#text", "Enter")
            await page.wait_for_selector(f"#chat li:nth-child({2 * number}):not(.waiting)")
        made = await page.locator(
            "#chat :is(script, iframe, svg, img, style, link, form, base, meta, a)"
        ).count()
        told = await page.inner_text("#chat")

    assert made == 0
    assert wrong == []
    assert "<svg/onload=alert(3)>" in told
    assert "javascript:alert(6)" in told


def _note_foreign(asked: str, own: str, wrong: list[str]) -> None:
    if not asked.startswith(own):
        wrong.append(f"request: {asked}")


async def test_a_link_in_an_open_page_signs_in_and_a_command_is_answered_for_good():
    async with house() as home, chromium() as context:
        page = await context.new_page()
        wrong = watch(page)
        await page.goto(f"{home.url}/")
        await page.wait_for_selector("#outside:not([hidden])")
        await page.goto(await link_to(home))
        await page.wait_for_selector("body.awake")
        for number, text in enumerate(("hello", "/stop"), start=1):
            await page.fill("#text", text)
            await page.press("#text", "Enter")
            await page.wait_for_selector(f"#chat li:nth-child({2 * number}):not(.waiting)")
        said = await page.locator("#chat li").all_inner_texts()
        await page.reload()
        await page.wait_for_selector("#chat li:nth-child(4)")
        recalled = await page.locator("#chat li").all_inner_texts()

    assert said == recalled == ["hello", "well", "/stop", "Nothing was running."]
    assert wrong == []


async def signed_in(context: BrowserContext, home: House) -> Page:
    page = await context.new_page()
    await page.goto(await link_to(home))
    await page.wait_for_selector("body.awake")
    return page


async def test_what_is_said_elsewhere_and_what_was_stopped_stay_in_the_chat():
    pause = Pause("half an answer")
    async with house(["far", pause]) as home, chromium() as context:
        page = await signed_in(context, home)
        wrong = watch(page)
        await home.runtime.send("from a terminal")
        await page.wait_for_selector("#chat li:nth-child(2)")
        elsewhere = await page.locator("#chat li").all_inner_texts()
        await page.fill("#text", "think long")
        await page.press("#text", "Enter")
        await page.get_by_text("half an answer").wait_for()
        await page.fill("#text", "/stop")
        await page.press("#text", "Enter")
        await page.get_by_text("it ended here").wait_for()
        await page.wait_for_selector("#chat li:nth-child(6):not(.waiting)")
        said = await page.locator("#chat li").all_inner_texts()

    assert elsewhere == ["from a terminal", "far"]
    assert said[2:5] == ["think long", "half an answer\n(it ended here)", "/stop"]
    assert len(said) == 6
    assert wrong == []


async def test_what_an_agent_asked_stays_in_the_chat_when_the_page_is_opened_again():
    asks = says("", call("ask_human", "1", question=f"Which town? {HOSTILE}"))
    script = [asks, says("I write.", call("write_file", "2", path="a.md", text="x"))]
    rules = {"write_file": "ask"}
    async with house(script, approvals=rules) as home, chromium() as context:
        page = await signed_in(context, home)
        wrong = watch(page)
        for number, text in enumerate(("ask me", "write"), start=1):
            await page.fill("#text", text)
            await page.press("#text", "Enter")
            await page.wait_for_selector(f"#chat li:nth-child({2 * number}):not(.waiting)")
        said = "\n".join(await page.locator("#chat li").all_inner_texts())
        await page.reload()
        await page.wait_for_selector("#chat li:nth-child(5)")
        recalled = "\n".join(await page.locator("#chat li").all_inner_texts())

    told = ["ask me", f"Which town? {HOSTILE}", "write", "I write.", WAITS]
    assert said == "\n".join([*told[:4], "", WAITS])
    assert recalled == "\n".join(told)
    assert wrong == []


async def test_lines_stay_lines_and_markdown_is_shown_without_markup():
    answer = f"# Plan\nuse `ls` **now**\n```sh\necho {HOSTILE}\n```\nend"
    async with house(lambda _: answer) as home, chromium() as context:
        page = await signed_in(context, home)
        wrong = watch(page)
        await page.fill("#text", "one")
        await page.press("#text", "Shift+Enter")
        await page.keyboard.type("two")
        await page.press("#text", "Enter")
        await page.locator("#chat pre").wait_for()
        mine = await page.inner_text("#chat li:nth-child(1)")
        shown = {
            name: await page.locator(f"#chat {name}").all_inner_texts()
            for name in ("strong", "code", "pre", "img")
        }

    assert mine == "one\ntwo"
    assert shown == {
        "strong": ["Plan", "now"],
        "code": ["ls"],
        "pre": [f"echo {HOSTILE}"],
        "img": [],
    }
    assert wrong == []


async def test_a_message_that_nobody_works_on_is_said_to_be_kept():
    async with house(["at last"]) as home, chromium() as context:
        page = await signed_in(context, home)
        wrong = watch(page)
        await home.runtime.halt()
        await page.fill("#text", "hello")
        await page.press("#text", "Enter")
        await page.get_by_text("It is kept (halted), and answered when that is over.").wait_for()
        await home.runtime.resume()
        await page.get_by_text("at last").wait_for()

    assert wrong == []
