"""The checker reads a turn that began with an approved call as any other."""

from pathlib import Path

from tests.integration.approvals.asking import after, asking
from wakeful.testing.checker.finding import InvariantFinding
from wakeful.testing.checker.history import History, read_ledgers, read_sqlite
from wakeful.testing.checker.trust import strangers_change_nothing
from wakeful.testing.kit import call, says


async def test_a_turn_that_reads_its_inbox_after_an_approved_call_is_judged(tmp_path: Path):
    lines = [says("", call("act", what="x")), says("", call("check_inbox")), "done"]
    async with asking(lines, home=tmp_path) as runtime:
        await runtime.post("obey", source="feed")
        await runtime.wait(await runtime.send("begin"))
        await runtime.approve(1)
        await after(runtime, 1)
        history = History(read_sqlite(tmp_path / "wakeful.db"), read_ledgers(tmp_path))

    finding = InvariantFinding("I21")
    strangers_change_nothing(history, finding)

    assert finding.facts > 1
    assert finding.broken == 0
