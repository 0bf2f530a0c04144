"""Deliveries carry files, and say which message they answer."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.integration.engine.looking import shown, turn_of
from tests.pictures import attachment, png
from wakeful.access.principal import Principal
from wakeful.intake.bindings import Contact
from wakeful.models.scripted import Line
from wakeful.outbox.outbox import ReadyDelivery
from wakeful.runtime import Runtime
from wakeful.testing.kit import Scripted, call, in_memory, says, wait_for
from wakeful.tools.tool import tool
from wakeful.turn.agent import Agent
from wakeful.vocabulary.entry import ToolBody, attached
from wakeful.vocabulary.route import Route

OUT = Route(door="out", address="ann")


class Desk:
    """A runtime with a workspace and a door that keeps what it is given."""

    def __init__(self, folder: Path, lines: Sequence[Line]) -> None:
        self.model = Scripted(lines)
        self.got: list[ReadyDelivery] = []
        self.folder = folder / "w"
        self.folder.mkdir()
        agent = Agent(model=self.model, workspace=self.folder)
        self.runtime = Runtime(agents=[agent], doors={"out": self.take})

    async def take(self, delivery: ReadyDelivery) -> None:
        self.got.append(delivery)


async def test_a_message_carries_files_of_the_workspace(tmp_path: Path):
    desk = Desk(tmp_path, [says("", call("send_message", text="here", files=["a/r.csv"])), "sent"])
    (desk.folder / "a").mkdir()
    (desk.folder / "a/r.csv").write_bytes(b"a,b\n")
    async with desk.runtime as runtime:
        turn = await turn_of(runtime, await runtime.send("send it", route=OUT))
        await wait_for(runtime, "delivery.acknowledged")

    (first, *_) = desk.got
    assert (first.text, first.turn_id) == ("here", turn.id)
    assert [(one.name, one.media_type, one.content()) for one in first.files] == [
        ("r.csv", "text/csv", b"a,b\n")
    ]
    assert "with 'r.csv'" in shown(desk.model.requests[1])[-1]
    assert turn.tool_calls == 1


async def test_a_file_that_a_call_of_the_same_reply_writes_can_be_sent(tmp_path: Path):
    both = says(
        "",
        call("write_file", "w", path="new.txt", text="fresh"),
        call("send_message", "s", text="", files=["new.txt"]),
    )
    desk = Desk(tmp_path, [both, "sent"])
    async with desk.runtime as runtime:
        await turn_of(runtime, await runtime.send("go", route=OUT))
        await wait_for(runtime, "delivery.acknowledged")

    assert desk.got[0].files[0].content() == b"fresh"


async def test_what_was_attached_is_sent_on(tmp_path: Path):
    name = hashlib.sha256(png()).hexdigest()[:16]
    forward = says("", call("send_message", text="look", files=[f"attachment:{name}"]))
    desk = Desk(tmp_path, [forward, "sent"])
    async with desk.runtime as runtime:
        sent = await runtime.send("pass it on", route=OUT, attachments=[attachment(png())])
        await turn_of(runtime, sent)
        await wait_for(runtime, "delivery.acknowledged")

    assert desk.got[0].files[0].content() == png()


async def test_the_whole_output_of_a_tool_can_be_sent():
    @tool(effect="read")
    def many() -> str:
        """Say much."""
        return "x" * 40_000

    def send(request: object) -> Line:
        output = shown(model.requests[1])[-1].partition("id '")[2].partition("'")[0]
        return says("", call("send_message", text="all", files=[f"output:{output}"]))

    got: list[ReadyDelivery] = []

    async def take(delivery: ReadyDelivery) -> None:
        got.append(delivery)

    model = Scripted([says("", call("many")), send, "sent"])
    async with in_memory(model, tools=[many], doors={"out": take}) as runtime:
        await turn_of(runtime, await runtime.send("go", route=OUT))
        await wait_for(runtime, "delivery.acknowledged")

    assert got[0].files[0].content() == b"x" * 40_000
    assert got[0].files[0].media_type == "text/plain"


@pytest.mark.parametrize(
    ("files", "why"),
    [
        (["none.txt"], "none.txt"),
        (["../../etc/passwd"], "path"),
        (["attachment:0000000000000000"], "no attachment"),
        (["output:tn_x.1.0"], "no output"),
        (["x"] * 21, "must be at most 20"),
        (["large", "large"], "must be at most 10 MiB together"),
        ("large", "Expected `array`"),
    ],
)
async def test_a_file_that_cannot_be_sent_sends_nothing(tmp_path: Path, files: object, why: str):
    desk = Desk(tmp_path, [says("", call("send_message", text="here", files=files)), "NO_REPLY"])
    (desk.folder / "large").write_bytes(bytes(6 * 1024 * 1024))
    async with desk.runtime as runtime:
        await turn_of(runtime, await runtime.send("send it", route=OUT))
        rows = await runtime.store.read("SELECT COUNT(*) FROM deliveries")

    assert why in shown(desk.model.requests[1])[-1]
    assert rows[0][0] == 0


async def test_whoever_reads_the_conversation_finds_the_files_in_it(tmp_path: Path):
    desk = Desk(tmp_path, [says("", call("send_message", text="", files=["p.png"])), "there"])
    (desk.folder / "p.png").write_bytes(png())
    async with desk.runtime as runtime:
        await turn_of(runtime, await runtime.send("draw", route=Route(door="http")))
        entries = await runtime.entries()

    (result,) = [one for one in entries if isinstance(one.content(), ToolBody)]
    assert [one.media_type for one in attached(result)] == ["image/png"]


async def test_a_reply_names_the_message_that_it_answers():
    got: list[ReadyDelivery] = []

    async def take(delivery: ReadyDelivery) -> None:
        got.append(delivery)

    contact = Contact(door="out", peer="ann")
    lines = [
        says("", call("send_message", "a", text="one")),
        says("", call("send_message", "b", text="two", reply_to="m-1")),
        "three",
    ]
    async with in_memory(lines, doors={"out": take}) as runtime:
        receipt = await runtime.receive(Principal.operator(), contact, "hi", message_id="m-7")
        await turn_of(runtime, receipt)
        seen: list[object] = []
        await wait_for(
            runtime, "delivery.acknowledged", lambda e: not seen.append(e) and len(seen) == 3
        )

    assert [(one.text, one.reply_to) for one in got] == [
        ("one", "m-7"),
        ("two", "m-1"),
        ("three", "m-7"),
    ]


async def test_bytes_that_are_gone_fail_the_delivery_and_do_not_stop_the_next():
    got: list[ReadyDelivery] = []

    async def take(delivery: ReadyDelivery) -> None:
        got.append(delivery)

    async with in_memory(["one", "two"], doors={"out": take}) as runtime:
        await turn_of(runtime, await runtime.send("a", route=OUT))
        await wait_for(runtime, "delivery.acknowledged")
        lost = '[{"name":"a.png","media_type":"image/png","size":1,"hash":"' + "0" * 64 + '"}]'
        await runtime.store.transact(
            lambda tx: tx.run(
                "UPDATE deliveries SET state = 'queued', attachments = :lost", lost=lost
            )
        )
        await turn_of(runtime, await runtime.send("b", route=OUT))
        failed = await wait_for(runtime, "delivery.failed")

    assert "the bytes of 'a.png' are gone" in str(failed.data)
    assert [one.text for one in got] == ["one", "two"]
