"""Chaos: load, random deaths and bad weather for as long as wanted, then the checker, a report.

`python -m tests.proofs.chaos --seed N --minutes M [--database URL|postgres]` writes
chaos-report.json and exits with 1 if a promise was broken. The same seed gives the same load and
the same deaths, though never the same moments.
"""

import argparse
import asyncio
import logging
import os
import platform
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tests.children import ROOT, heed_signals
from tests.postgres_server import databases
from tests.proofs.client import Client, Load
from tests.proofs.points import failpoints
from tests.proofs.process import Gone, Place, RigProcess, running
from tests.proofs.rig import BUDGET, TICKS
from tests.proofs.trial import come_to_rest, judged
from tests.proofs.weather import Weather, small_disk
from wakeful.testing.checker.check import Report
from wakeful.vocabulary.clock import SystemClock
from wakeful.vocabulary.record import Record

LIVES_PER_ROUND = 30  # then the process may rest, and everything is checked
MESSAGES_PER_LIFE = 400
SHORTEST_LIFE_S = 0.05
LONGEST_LIFE_S = 1.0
DRAIN_S = "0.5"
DEATHS = (*("kill",) * 7, "pause", "term", "terms", "commit", "point", "point")
MESSAGES_IN_WEATHER = 150
SURVIVED_S = (2.0, 8.0)  # longer, too, than a store waits for a stranger
PAUSED_S = (0.2, 3.0)
ABSENT = ("", "", "", "other")  # who is missing in a life
LEAPS_MS = (0, 0, 0, 61_000)  # of the wall clock before a life: naps end, ticks are due
# What agents may spend in a round: more than they can, or so little that most of it is refused.
BUDGETS = ("", '{"money_per_day": 0.4, "turns_per_day": 60, "money_per_chain": null}')
REPORT = Path("chaos-report.json")


class ChaosReport(Record):
    """What came of it all."""

    commit: str
    machine: str
    nodes: int
    seed: int
    minutes: float
    took_s: float
    database: str
    rounds: int
    kills: int
    weather: dict[str, int]  # phases of each kind
    drowned: list[str]  # lives that did not survive one
    stimuli: int
    turns: int
    facts: dict[str, int]
    violations: dict[str, int]
    examples: list[str]


class Chaos:
    """Rounds of lives: each on a fresh SQLite file, or all on the one database that was given."""

    def __init__(self, seed: int, database: str, lives: int = LIVES_PER_ROUND) -> None:
        self._seed = seed
        self._database = database
        self._lives = lives
        self._phases: Counter[str] = Counter()
        self._took = ""
        self._env: dict[str, str] = {}
        self._ahead_ms = 0  # of the machine's clock
        self._drowned: list[str] = []  # lives that bad weather ended, or left with work undone
        self._chance = random.Random(seed)
        self._clock = SystemClock()
        self._reports: list[Report] = []

    async def run(self, minutes: float) -> ChaosReport:
        """Go on until the time is over or a promise is broken."""
        started = self._clock.monotonic()
        while self._clock.monotonic() < started + minutes * 60:
            report = await self._round(len(self._reports))
            self._reports.append(report)
            sys.stdout.write(
                f"round {len(self._reports)}: {report.crashes} kills, {report.stimuli} stimuli, "
                f"{report.turns} turns, {self._took}, broken: {sorted(report.caught) or 'none'}"
                f"{', drowned' if self._drowned else ''}\n"
            )
            sys.stdout.flush()
            if report.caught or self._drowned:
                sys.stdout.write(
                    f"{report.table()}\nseed {self._seed}, {self._last_place.folder}\n"
                )
                break
        return self._summed(minutes, self._clock.monotonic() - started)

    async def _round(self, number: int) -> Report:
        place = self._place(number)
        if self._database != "sqlite":
            return await self._live(place, number)
        with small_disk(place.home):
            report = await self._live(place, number)
            if report.caught or self._drowned:
                shutil.copytree(place.home, place.folder / "home-kept")  # to find out why
                return report
        shutil.rmtree(place.folder)
        return report

    async def _live(self, place: Place, number: int) -> Report:
        """Live, die and come to rest in one place, and be judged."""
        # On one database a later round cannot be poorer: what was spent stays spent.
        budget = BUDGETS[number % len(BUDGETS)] if self._database == "sqlite" else ""
        self._env = {BUDGET: budget}
        self._ahead_ms = 0
        client = Client(place, self._seed + number)
        # Every other pair of rounds: with each of the budgets.
        load = Load(client, self._seed + number, is_hard=True, has_quiet_hours=number // 2 % 2 == 0)
        weather = Weather(place, self._seed + number)
        began = self._clock.monotonic()
        async with asyncio.TaskGroup() as group:
            changing = group.create_task(weather.run())
            lived = 0
            while lived < self._lives:  # a process that bad weather keeps from starting is none
                lived += await self._life(place, client, load, weather)
            changing.cancel()
        ended = self._clock.monotonic()
        await come_to_rest(place, client, env=self._env, deaths=load.deaths)
        await self._survive(place, client, load, weather)
        rested = self._clock.monotonic()
        report = await judged(place)
        self._phases.update(weather.phases)
        self._took = f"lived {ended - began:.0f} s, came to rest in {rested - ended:.0f} s"
        return report

    async def _survive(self, place: Place, client: Client, load: Load, weather: Weather) -> None:
        """Live through bad weather and come to rest in that same life.

        A new start would heal whatever was left stranded: who does not come to rest is judged as
        it is.
        """
        load.suspects = 0.0
        try:
            async with running(place, env=self._env) as rig:
                async with asyncio.TaskGroup() as group:
                    group.create_task(client.come_back(rig))
                    group.create_task(load.run(rig, MESSAGES_IN_WEATHER))
                    await weather.phase(self._chance.uniform(*SURVIVED_S))
                    await weather.pause(rig, self._chance.uniform(*PAUSED_S))
                await client.come_back(rig)
                await rig.ask("pause_jobs")
                await rig.rest()
                await rig.stop()
        except (Gone, TimeoutError) as error:
            self._drowned.append(f"round {len(self._reports) + 1}: {type(error).__name__} {error}")

    def _place(self, number: int) -> Place:
        if number == 0 or self._database == "sqlite":
            folder = Path(tempfile.mkdtemp(prefix=f"wakeful-chaos-{self._seed}-{number}-"))
            self._last_place = Place(folder, self._database)
        return self._last_place

    async def _life(self, place: Place, client: Client, load: Load, weather: Weather) -> bool:
        """Live under load until one of several deaths; return whether it began to live at all."""
        has_begun = False
        life_s = self._chance.uniform(SHORTEST_LIFE_S, LONGEST_LIFE_S)
        death = self._chance.choice(DEATHS)
        options = ["--drain-s", DRAIN_S, "--absent", self._chance.choice(ABSENT)]
        fail = ""
        if death == "commit":
            where = self._chance.choice(("before", "after"))
            options += ["--die", f"{where}:{self._chance.randrange(2, 120)}"]
        elif death == "point":
            fail = f"{self._chance.choice(failpoints())}:kill:{self._chance.randrange(1, 30)}"
        self._ahead_ms += self._chance.choice(LEAPS_MS)
        place.move_clock(self._ahead_ms)
        env = {**self._env, "WAKEFUL_FAIL": fail, TICKS: "1"}
        try:
            async with (
                running(place, env=env, options=options) as rig,
                asyncio.TaskGroup() as group,
            ):
                has_begun = True
                group.create_task(client.come_back(rig))
                group.create_task(load.run(rig, MESSAGES_PER_LIFE))
                await self._clock.sleep(life_s)
                if death == "pause":
                    await weather.pause(rig, self._chance.uniform(*PAUSED_S))
                    await self._clock.sleep(life_s)
                await self._die(rig, death)
        except Gone:
            pass
        return has_begun

    async def _die(self, rig: RigProcess, death: str) -> None:
        if death not in ("term", "terms"):
            rig.kill()
            return
        rig.terminate()
        if death == "terms":
            rig.terminate()
        await rig.ended()

    def _summed(self, minutes: float, took_s: float) -> ChaosReport:
        # On one database each check covers all that came before it.
        reports = self._reports if self._database == "sqlite" else self._reports[-1:]
        names = reports[0].facts if reports else {}
        return ChaosReport(
            commit=_commit(),
            machine=f"{platform.platform()}, {os.cpu_count()} cores",
            nodes=1,
            seed=self._seed,
            minutes=minutes,
            took_s=round(took_s, 1),
            database=self._database.partition("://")[0],
            rounds=len(self._reports),
            kills=sum(report.crashes for report in reports),
            weather=dict(self._phases),
            drowned=self._drowned,
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


def _commit() -> str:
    """Return what is proved; unknown outside a clone."""
    try:
        words = ("git", "-C", str(ROOT), "describe", "--always", "--dirty")
        return subprocess.run(words, capture_output=True, check=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.proofs.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--database", default="sqlite", help="sqlite, postgres, or an address")
    parser.add_argument("--lives", type=int, default=LIVES_PER_ROUND, help="between two checks")
    options = parser.parse_args()
    heed_signals()
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # pipes to the dead are no news here
    with _address(options.database) as database:
        chaos = Chaos(options.seed, database, options.lives)
        report = asyncio.run(chaos.run(options.minutes))
    REPORT.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    sys.stdout.write(f"{report.kills} kills, {report.stimuli} stimuli, {report.turns} turns\n")
    return 1 if any(report.violations.values()) or report.drowned else 0


@contextmanager
def _address(wanted: str) -> Generator[str, None, None]:
    """Start a PostgreSQL if one is wanted and none is named."""
    if wanted != "postgres":
        yield wanted
        return
    with databases() as server:
        yield server.url(server.create())


if __name__ == "__main__":
    sys.exit(main())
