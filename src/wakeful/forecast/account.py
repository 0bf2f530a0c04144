"""The account of a forecast: what the functions published, summed up and in order of time."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec.structs import replace

from wakeful.bus.bus import Bus
from wakeful.forecast.simulated import AssumedAnswer
from wakeful.forecast.sources import DIGEST, source_of
from wakeful.gate.money import dollars, nano
from wakeful.store.database import Tx
from wakeful.triggers import ticking
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.forecast import ForecastRow, Happening, What
from wakeful.vocabulary.session_key import agent_of
from wakeful.vocabulary.stimulus import Outcome

# When what waits is looked at, by the ids of stimuli; None where nobody knows.
WhenLookedAt = Callable[[Collection[str]], dict[str, int | None]]
_DEFERRED = frozenset({Outcome.QUEUED.value, Outcome.DEBOUNCING.value})


class HeardBus(Bus):
    """A bus that stores nothing: whatever is published is heard by one listener."""

    def __init__(self, *given: object, heard: Callable[[Tx, Event], None], **more: object) -> None:
        super().__init__(*given, **more)  # pyright: ignore[reportArgumentType]
        self._heard = heard

    def publish(
        self,
        tx: Tx,
        what: Event | str,
        session_key: str | None = None,
        *,
        turn_id: str | None = None,
        stimulus_id: str | None = None,
        **data: object,
    ) -> None:
        if isinstance(what, str):
            what = Event(
                kind=what,
                session_key=session_key,
                turn_id=turn_id,
                stimulus_id=stimulus_id,
                data=data,
            )
        self._heard(tx, what)


class Tally:
    """What comes of one source of an agent, while it is counted."""

    def __init__(self) -> None:
        self.fires = self.turns = self.parked = self.deferred = self.collisions = 0
        self.suppressed: Counter[str] = Counter()
        self.calls = self.input = self.output = self.unpriced = 0
        self.nano_p50 = self.nano_p90 = 0  # billionths of a dollar, which add up

    def row(self, agent_id: str, source: str) -> ForecastRow:
        return ForecastRow(
            agent_id=agent_id,
            source=source,
            fires=self.fires,
            turns=self.turns,
            suppressed=dict(sorted(self.suppressed.items())),
            parked=self.parked,
            deferred=self.deferred,
            collisions=self.collisions,
            calls=self.calls,
            input=self.input,
            output=self.output,
            money_p50=dollars(self.nano_p50),
            money_p90=dollars(self.nano_p90),
            unpriced=self.unpriced,
        )


class Account:
    """Writes down what happens, from `begin` on."""

    def __init__(self, when_looked_at: WhenLookedAt) -> None:
        self._when_looked_at = when_looked_at
        self._is_begun = False
        self._sources: dict[str, str] = {}  # by stimulus
        self._tallies: defaultdict[tuple[str, str], Tally] = defaultdict(Tally)
        self._dues: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        self._parked: dict[str, int] = {}  # stimuli of this instant, and their lines
        self.lines: list[Happening] = []
        self.first: dict[tuple[str, str], AssumedAnswer] = {}  # the first answer of each source

    def begin(self, sources: Iterable[tuple[str, str]]) -> None:
        """Listen from now on; something of these sources waits already, by its stimulus."""
        self._is_begun = True
        self._sources.update(sources)

    def hear(self, tx: Tx, event: Event) -> None:
        if not self._is_begun:
            return
        match event.kind:
            case "stimulus.accepted":
                self._accepted(tx.now, event)
            case "stimulus.parked" | "stimulus.suppressed":
                self._put_off(tx.now, event)
            case "turn.started":
                source = source_of(event.data["origin"], event.data["source"])
                self._tally(event, source).turns += 1
                self._add(tx.now, event, source, What.TURN)
            case "automation.skipped" | "automation.missed" | "automation.error":
                if event.stimulus_id is None:  # nothing was filed for it
                    self._skipped(tx.now, event)
            case "timer.fired" if event.data["kind"] == ticking.TIMER_KIND:
                self._note_due(tx.now, event, "tick")  # of which nothing may come
            case _:
                pass

    def answered(self, answer: AssumedAnswer) -> None:
        """Count a question and its answer."""
        key = answer.agent_id, answer.source
        tally = self._tallies[key]
        self.first.setdefault(key, answer)
        tally.calls += 1
        tally.input += answer.input
        tally.output += answer.output
        tally.unpriced += answer.cost is None
        tally.nano_p50 += nano(answer.cost or 0.0)
        tally.nano_p90 += nano(answer.cost_p90 or 0.0)

    def settle(self) -> None:
        """Look up, once what was written is there, until when things are put off."""
        if self._parked:
            for stimulus_id, until in self._when_looked_at(self._parked).items():
                place = self._parked[stimulus_id]
                self.lines[place] = replace(self.lines[place], until=until)
            self._parked.clear()

    def rows(self, turn_ms: Callable[[str, str], int]) -> list[ForecastRow]:
        """Sum up, by agent and source; `turn_ms` says how long a turn is taken to last."""
        for session_key, dues in self._dues.items():
            agent_id = agent_of(session_key)
            for source in colliding(dues, lambda source, agent=agent_id: turn_ms(agent, source)):
                self._tallies[agent_id, source].collisions += 1
        return [tally.row(*key) for key, tally in sorted(self._tallies.items())]

    def _accepted(self, at: int, event: Event) -> None:
        source = source_of(event.data["origin"], event.data["source"])
        assert event.stimulus_id is not None
        self._sources[event.stimulus_id] = source
        tally = self._tally(event, source)
        tally.fires += 1
        self._add(at, event, source, What.DIGEST if source == DIGEST else What.FIRE)
        self._note_due(at, event, source)
        if event.data["outcome"] in _DEFERRED:
            tally.deferred += 1
            self._add(at, event, source, What.DEFERRED)

    def _skipped(self, at: int, event: Event) -> None:
        """Write down an occurrence of a job that nothing comes of."""
        source = f"cron:{event.data['name']}"
        tally = self._tally(event, source)
        tally.fires += 1
        reason = event.data.get("reason") or event.kind.partition(".")[2]
        tally.suppressed[reason] += 1
        self._add(at, event, source, What.FIRE)
        self._add(at, event, source, What.SUPPRESSED, reason)
        self._note_due(at, event, source)

    def _put_off(self, at: int, event: Event) -> None:
        """Write down what became of a stimulus, as it came or in its lane."""
        assert event.stimulus_id is not None
        source = self._sources.get(event.stimulus_id, "")
        what, reason = What(event.kind.partition(".")[2]), event.data.get("reason")
        if what is What.PARKED:
            self._tally(event, source).parked += 1
            self._parked[event.stimulus_id] = len(self.lines)
        else:
            self._tally(event, source).suppressed[reason or what.value] += 1
        self._add(at, event, source, what, reason)

    def _add(
        self, at: int, event: Event, source: str, what: What, reason: str | None = None
    ) -> None:
        key = event.session_key or ""
        line = Happening(at=at, session_key=key, source=source, what=what, reason=reason)
        self.lines.append(line)

    def _note_due(self, at: int, event: Event, source: str) -> None:
        dues = self._dues[event.session_key or ""]
        if not dues or dues[-1] != (at, source):
            dues.append((at, source))

    def _tally(self, event: Event, source: str) -> Tally:
        return self._tallies[agent_of(event.session_key or ""), source]


def colliding(dues: Sequence[tuple[int, str]], turn_ms: Callable[[str], int]) -> list[str]:
    """Return the source of each due in a session that has another one's within a turn of it."""
    found: set[int] = set()
    for place, (at, source) in enumerate(dues):
        end = at + turn_ms(source)
        for later in range(place + 1, len(dues)):
            due_at, other = dues[later]
            if due_at >= end:
                break
            if other != source:
                found |= {place, later}
    return [dues[place][1] for place in sorted(found)]
