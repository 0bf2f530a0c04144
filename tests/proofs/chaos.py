"""Chaos: load and random deaths for as long as wanted, then the checker, then a report.

`python -m tests.proofs.chaos --seed N --minutes M [--database URL]` writes chaos-report.json
and exits with 1 if a promise was broken. The same seed gives the same load and the same deaths,
though never the same moments.
"""

import argparse
import asyncio
import logging
import random
import shutil
import sys
import tempfile
from pathlib import Path

import msgspec

from tests.proofs.client import Client, Load
from tests.proofs.process import Gone, Place, RigProcess, running
from tests.proofs.trial import come_to_rest, judged
from wakeful.testing.checker.check import Report
from wakeful.vocabulary.clock import SystemClock
from wakeful.vocabulary.record import Record

LIVES_PER_ROUND = 6  # then the process may rest, and everything is checked
MESSAGES_PER_LIFE = 400
SHORTEST_LIFE_S = 0.05
LONGEST_LIFE_S = 1.5
REPORT = Path("chaos-report.json")


class ChaosReport(Record):
    """What came of it all."""

    seed: int
    minutes: float
    database: str
    rounds: int
    kills: int
    stimuli: int
    turns: int
    facts: dict[str, int]
    violations: dict[str, int]
    examples: list[str]


class Chaos:
    """Rounds of lives: each on a fresh SQLite file, or all on the one database that was given."""

    def __init__(self, seed: int, database: str) -> None:
        self._seed = seed
        self._database = database
        self._chance = random.Random(seed)
        self._clock = SystemClock()
        self._reports: list[Report] = []

    async def run(self, minutes: float) -> ChaosReport:
        """Go on until the time is over or a promise is broken."""
        until = self._clock.now() + round(minutes * 60_000)
        while self._clock.now() < until:
            report = await self._round(len(self._reports))
            self._reports.append(report)
            sys.stdout.write(
                f"round {len(self._reports)}: {report.crashes} kills, {report.stimuli} stimuli, "
                f"{report.turns} turns, broken: {sorted(report.caught) or 'none'}\n"
            )
            sys.stdout.flush()
            if report.caught:
                sys.stdout.write(report.table() + "\n")
                break
        return self._summed(minutes)

    async def _round(self, number: int) -> Report:
        place = self._place(number)
        client = Client(place, self._seed + number)
        load = Load(client, self._seed + number)
        for _ in range(LIVES_PER_ROUND):
            await self._life(place, client, load)
        await come_to_rest(place, client)
        report = await judged(place)
        if self._database == "sqlite" and not report.caught:
            shutil.rmtree(place.folder)  # what broke a promise is kept, for whoever must find out
        return report

    def _place(self, number: int) -> Place:
        if number == 0 or self._database == "sqlite":
            folder = Path(tempfile.mkdtemp(prefix=f"wakeful-chaos-{self._seed}-{number}-"))
            self._last_place = Place(folder, self._database)
        return self._last_place

    async def _life(self, place: Place, client: Client, load: Load) -> None:
        """Live under load until one of several deaths."""
        life_s = self._chance.uniform(SHORTEST_LIFE_S, LONGEST_LIFE_S)
        death = self._chance.choice(("kill", "kill", "kill", "term", "terms", "commit", "point"))
        options: tuple[str, ...] = ()
        fail = ""
        if death == "commit":
            where = self._chance.choice(("before", "after"))
            options = ("--die", f"{where}:{self._chance.randrange(2, 120)}")
        elif death == "point":
            fail = f"P{self._chance.randrange(1, 14)}:kill:{self._chance.randrange(1, 30)}"
        try:
            async with (
                running(place, env={"WAKEFUL_FAIL": fail}, options=options) as rig,
                asyncio.TaskGroup() as group,
            ):
                group.create_task(client.come_back(rig))
                group.create_task(load.run(rig, MESSAGES_PER_LIFE))
                await self._clock.sleep(life_s)
                await self._die(rig, death)
        except Gone:
            return

    async def _die(self, rig: RigProcess, death: str) -> None:
        if death not in ("term", "terms"):
            rig.kill()
            return
        rig.terminate()
        if death == "terms":
            rig.terminate()
        await rig.ended()

    def _summed(self, minutes: float) -> ChaosReport:
        # On one database each check covers all that came before it.
        reports = self._reports if self._database == "sqlite" else self._reports[-1:]
        names = reports[0].facts if reports else {}
        return ChaosReport(
            seed=self._seed,
            minutes=minutes,
            database=self._database.partition("://")[0],
            rounds=len(self._reports),
            kills=sum(report.crashes for report in reports),
            stimuli=sum(report.stimuli for report in reports),
            turns=sum(report.turns for report in reports),
            facts={name: sum(report.facts.get(name, 0) for report in reports) for name in names},
            violations={
                name: sum(report.broken.get(name, 0) for report in reports) for name in names
            },
            examples=[
                "\n".join((f"{found.invariant}: {found.message}", *found.story))
                for report in reports
                for found in report.violations[:5]
            ],
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.proofs.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--database", default="sqlite")
    options = parser.parse_args()
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # pipes to the dead are no news here
    report = asyncio.run(Chaos(options.seed, options.database).run(options.minutes))
    REPORT.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    sys.stdout.write(f"{report.kills} kills, {report.stimuli} stimuli, {report.turns} turns\n")
    return 1 if any(report.violations.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
