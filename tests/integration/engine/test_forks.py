"""Random trees of forks, resets and deletions against a model that remembers whole paths."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from wakeful.models.model import Request
from wakeful.models.scripted import Scripted
from wakeful.runtime import Runtime
from wakeful.testing.kit import in_memory
from wakeful.vocabulary.entry import chain
from wakeful.vocabulary.session_key import SessionKey

# Each act is a kind, a session by its place in the list, and an entry by its place in its path.
ACTS = st.lists(
    st.tuples(
        st.sampled_from(["say", "say", "say", "fork", "fork", "to", "reset", "delete"]),
        st.integers(0, 3),
        st.integers(0, 20),
    ),
    min_size=4,
    max_size=14,
)


def well(_: Request) -> str:
    return "well"


class Story:
    """Does to a runtime, and to lists of ids, the same things."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._made = 0
        self.paths: dict[str, list[str]] = {}
        self.past: dict[str, list[list[str]]] = {}

    async def act(self, what: str, session: int, entry: int) -> None:
        if not self.paths:
            what = "new"
        names = list(self.paths)
        name = names[session % len(names)] if names else ""
        path = self.paths.get(name, [])
        if what == "new" or (what == "delete" and len(names) == 1):
            await self._say(self._new_name())
        elif what == "say" or not path:
            await self._say(name)
        elif what == "delete":
            await self._runtime.delete(name)
            del self.paths[name], self.past[name]
        elif what == "reset":
            await self._runtime.reset(name)
            self.past[name].append(path)
            self.paths[name] = []
        else:
            at = entry % len(path)
            to = self._new_name() if what == "to" else None
            await self._runtime.fork(name, at=path[at], to=to)
            self.past.setdefault(to or name, [])
            self.paths[to or name] = path[: at + 1]

    async def _say(self, name: str) -> None:
        assert await self._runtime.wait(await self._runtime.send("x", session=name)) is not None
        known = self.paths.setdefault(name, [])
        self.past.setdefault(name, [])
        self.paths[name] = [*known, *(e.id for e in (await self._runtime.entries(name))[-2:])]

    def _new_name(self) -> str:
        self._made += 1
        return f"s{self._made}"


async def told(acts: list[tuple[str, int, int]]) -> None:
    async with in_memory(Scripted(well)) as runtime:
        story = Story(runtime)
        for act in acts:
            await story.act(*act)
        for name, path in story.paths.items():
            found = await runtime.entries(name)
            assert [entry.id for entry in found] == path
            last = ""
            for entry in found:
                last = chain(last, entry.id, entry.kind, entry.body)
                assert entry.hash == last
            cards = (await runtime.transcripts(name))[1:]
            for card, past in zip(cards, reversed(story.past[name]), strict=True):
                told = await runtime.entries(name, transcript=card.tip.transcript_id)
                assert [entry.id for entry in told] == past
            view = runtime.services.views.transcripts
            for at in range(0, len(path), 3):
                key = SessionKey(f"agent:main:{name}")
                after = await view.page(key, after=path[at], limit=4)
                before = await view.page(key, before=path[at], limit=4)
                assert [entry.id for entry in after] == path[at + 1 : at + 5]
                assert [entry.id for entry in before] == path[max(0, at - 4) : at]
        for name in list(story.paths):
            await runtime.delete(name)
        for table in ("entries", "branches", "past_transcripts", "discarded_transcripts"):
            assert await runtime.store.read(f"SELECT * FROM {table}") == []


@settings(max_examples=25)
@given(ACTS)
def test_every_path_is_what_was_said_on_it_whatever_was_forked_reset_or_deleted(
    acts: list[tuple[str, int, int]],
):
    asyncio.run(told(acts))
