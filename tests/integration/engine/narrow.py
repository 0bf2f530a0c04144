"""A stand-in model that truly refuses what is longer than its window, in a provider's words."""

from collections.abc import AsyncGenerator, Callable
from random import Random

from wakeful.models.model import Delta, Piece, Reply, Request
from wakeful.models.refusals import SENTENCES, Sentence, too_long
from wakeful.models.windows import tokens_of_request
from wakeful.prompts import compaction as template
from wakeful.testing.kit import says
from wakeful.vocabulary.errors import ContextOverflow
from wakeful.vocabulary.message import Usage

MANY_ASKS = 500  # a test that asks more often does not end

SILENT = Sentence(who="nobody", sign="", example="")  # a refusal without a word


class Narrow:
    """Reads `window` tokens, counted its own way: `density` of them for each one we estimate."""

    context_window: int | None = None  # it does not say

    def __init__(
        self,
        window: int,
        *,
        density: float = 1.0,
        sentence: Sentence = SENTENCES[0],
        counts: bool = True,
        sums_up: Callable[[Request], str] | None = None,
    ) -> None:
        self.window = window
        self.requests: list[Request] = []
        self.refused = 0
        self._density = density
        self._sentence = sentence
        self._counts = counts
        self._sums_up = sums_up or well_formed
        self.replies: list[Reply | str] = []  # the next ones; then "ok"

    @property
    def name(self) -> str:
        return "vllm:narrow"

    def tokens(self, request: Request) -> int:
        return round(tokens_of_request(request) * self._density)

    async def stream(self, request: Request) -> AsyncGenerator[Piece, None]:
        self.requests.append(request)
        assert len(self.requests) < MANY_ASKS
        tokens = self.tokens(request)
        if tokens > self.window:
            self.refused += 1
            raise self._refusal(tokens, tokens_of_request(request))
        reply = self._reply(request)
        yield Delta(text="…")
        usage = Usage(input=tokens, output=1) if self._counts else Usage()
        yield Reply(content=reply.content, usage=usage, stop_reason=reply.stop_reason)

    def _reply(self, request: Request) -> Reply:
        if request.purpose == "summary":
            return says(self._sums_up(request))
        line = self.replies.pop(0) if self.replies else "ok"
        return says(line) if isinstance(line, str) else line

    def _refusal(self, asked: int, estimate: int) -> ContextOverflow:
        """Say it as a provider does, understood as an adapter does."""
        said = self._sentence.example.format(asked=asked, window=self.window)
        found = too_long(413 if not said else self._sentence.status, said, estimate)
        assert found is not None, said
        return ContextOverflow(f"It said: {said}", window=found.window)


def well_formed(request: Request) -> str:
    """Return a summary that has its headings, and a mark."""
    lines = [f"{heading}\nshort" for heading in template.headings(is_split=True)]
    return "\n".join(lines)


def talk(random: Random, size: int) -> str:
    """Return text of about so many characters."""
    part = "".join(random.choices("abcdefgh ", k=50)) + "."
    return (part * (size // len(part) + 1))[:size]
