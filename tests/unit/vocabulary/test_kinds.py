"""The table of kinds, against the one that was written down; and that nothing goes round it."""

import re

import pytest

from tests.sources import SOURCE, texts
from wakeful.vocabulary.kinds import RULES, Kind, Origin, kinds_of, kinds_where

# kind: joins, now, human, cap, storm, gate, asleep, answer, view, limit
WRITTEN = """
user                by-mode    yes yes    yes -   parks      wakes      route     full  turn
hub                 by-mode    yes partly yes yes parks      wakes      route     full  turn
a2a                 by-mode    yes no     yes yes parks      wakes      task      full  turn
a2a.reply           by-mode    -   no     -   -   parks      wakes      session   full  turn
inbox               when-idle  yes no     -   yes parks      wakes-now  activity  full  turn
webhook             when-idle  yes no     -   yes parks      wakes      session   full  turn
approval            when-idle  -   no     -   -   parks      wakes      session   full  turn
subagent.task       when-idle  -   no     -   -   parks      runs       requester full  run
subagent.announce   by-mode    yes no     -   -   parks      wakes      session   full  turn
subagent.message    by-mode    yes no     -   -   parks      wakes      sender    full  turn
callback            when-idle  -   no     -   -   parks      runs       route     full  turn
automation.bound    when-idle  -   no     -   -   parks      runs       session   full  job
automation.isolated when-idle  -   no     -   -   parks      runs       post      fresh job
wake                when-idle  -   no     -   -   suppressed ends       session   full  turn
tick                when-idle  -   no     -   -   suppressed suppressed session   by-key turn
heartbeat           when-idle  -   no     -   -   suppressed suppressed target    by-key turn
system.event        heartbeat  -   no     -   -   parks      waits      target    full  turn
system.digest       when-idle  -   no     -   -   parks      runs       activity  full  turn
system.post         when-idle  -   no     -   -   never      runs       session   full  turn
system.compaction   when-idle  -   no     -   -   parks      runs       asker     full  turn
system.memory-flush when-idle  -   no     -   -   parks      runs       nobody    full  turn
"""


@pytest.mark.parametrize("line", WRITTEN.strip().splitlines(), ids=lambda line: line.split()[0])
def test_the_table_says_what_was_written(line: str):
    name, *columns = line.split()
    rule = RULES[Kind(name)]

    found = [
        rule.joins,
        "yes" if rule.preempts else "-",
        rule.human,
        "yes" if rule.is_capped else "-",
        "yes" if rule.is_guarded else "-",
        rule.refused,
        rule.asleep,
        rule.answer,
        rule.view,
        rule.limit,
    ]

    assert [str(word) for word in found] == columns


def test_every_kind_has_its_row_and_every_origin_its_kinds():
    assert set(RULES) == set(Kind)
    assert {line.split()[0] for line in WRITTEN.strip().splitlines()} == set(Kind)
    assert all(kinds_of(origin) for origin in Origin)


def test_from_approvals_on_they_are_the_runtimes_own():
    order = list(Kind)
    inner = kinds_where(lambda rule: rule.is_inner)

    assert inner == [kind.value for kind in order[order.index(Kind.APPROVAL) :]]


def test_nobody_joins_the_runtimes_work_on_itself_or_what_sees_only_a_part():
    alone = kinds_where(lambda rule: not rule.is_joinable)

    assert set(alone) == {*kinds_of(Origin.SYSTEM), "heartbeat"}


def test_no_agent_ends_the_turn_of_a_person():
    assert kinds_where(lambda rule: not rule.supersedes) == [
        "subagent.announce",
        "subagent.message",
    ]


def test_nothing_asks_for_an_origin_or_a_source_but_reads_the_table():
    asked = re.compile(
        r"\.origin (?:is|==|!=|in|not in) (?!(?:not )?None|origin\b)|\borigin IN |"
        r"\.source (?:==|!=) |\bkind (?:is|==|!=|in|not in) (?:not )?Kind\.|\bkind IN \('"
    )
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, text in texts(SOURCE).items()
        if name != "vocabulary/kinds.py" and not name.startswith("testing/")
        for number, line in enumerate(text.splitlines(), 1)
        if asked.search(line)
    ]

    assert [line for line in found if "kind IN ('compaction', 'label')" not in line] == []
