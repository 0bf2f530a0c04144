"""What models can see: images, documents, or words alone.

What a model cannot see is named to it in a line of the runtime's, so that it knows what it misses.
"""

import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from wakeful.models.model import Model, Request
from wakeful.models.windows import ModelSettings
from wakeful.vocabulary.errors import (
    AttachmentRefused,
    ContextOverflow,
    Garbled,
    Permanent,
    Transient,
)
from wakeful.vocabulary.media import DOCUMENT, IMAGES
from wakeful.vocabulary.message import Message, ToolMessage, UserMessage
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import KeptAttachment

# Families whose models see images, whoever offers them; the name is without its provider.
_SEES = re.compile(
    r"claude-(?!2|instant)|gpt-4o|gpt-4\.[15]|gpt-4-turbo|gpt-4-vision|gpt-[5-9]|chatgpt-4o"
    r"|\bo1(?!-mini|-preview)|\bo3(?!-mini)|\bo4|gemini|llama-?4|llava|bakllava|pixtral|gemma-?3"
    r"|moondream|minicpm-v|mistral-small-?3\.[1-9]|mistral-medium-3|magistral|grok-(?:[4-9]|2-vis)"
    r"|internvl|molmo|nova-(?:lite|pro|premier)|multimodal|vision|qvq|glm-4\.?\d?v"
    r"|(?:^|[-_./:\d])vl(?:[-_./:\d]|$)"
)
_BLIND = re.compile(
    r"gemma-?3(?:-|:)1b|gemma-?3n|embed|codex-mini|gpt-4o-(?:audio|realtime|mini-tts)"
)
# How providers say that it is the attachment which they do not take.
_THING = r"(?:image|vision|multi-?modal|media|pdf|document|file|attachment)"
_NOT = (
    r"(?:not support|unsupported|invalid|could not|cannot|can't|unable|exceed|too large|too big"
    r"|too many|corrupt|not valid|valid image|fail|maximum|at most|missing|not enabled|no endpoints"
    r"|unknown variant)"
)
_REFUSES = re.compile(
    rf"{_THING}.{{0,80}}{_NOT}|{_NOT}.{{0,80}}{_THING}|content must be a string", re.IGNORECASE
)
_QUOTE = "It said:"  # what a provider said follows it
# Who takes PDFs as they are.
_READS_DOCUMENTS = frozenset(
    {"anthropic", "openai", "openai-chat", "openai-responses", "google", "google-cloud", "bedrock"}
)


class Sight(Record):
    """What a model takes beside text."""

    images: bool = False
    documents: bool = False

    def takes(self, attachment: KeptAttachment) -> bool:
        if attachment.media_type in IMAGES:
            return self.images
        return attachment.media_type == DOCUMENT and self.documents


BLIND = Sight()


def known_sight(name: str) -> Sight:
    """Return what a model can see, as far as its name tells."""
    provider, _, model = name.lower().partition(":")
    sees = _SEES.search(model) is not None and _BLIND.search(model) is None
    return Sight(images=sees, documents=sees and provider in _READS_DOCUMENTS)


def sight_of(model: Model) -> Sight:
    """Return what a model can see: what it says itself, else what its name tells."""
    sight: Sight | None = getattr(model, "sight", None)
    return known_sight(model.name) if sight is None else sight


def stated_sight(model: Model, models: Mapping[str, ModelSettings]) -> Sight:
    """Return what a model can see: the operator's word, else its own or its name's."""
    known, given = sight_of(model), models.get(model.name)
    if given is None:
        return known
    return Sight(
        images=known.images if given.vision is None else given.vision,
        documents=known.documents if given.documents is None else given.documents,
    )


def fitted(request: Request, sight: Sight) -> Request:
    """Return a request with what the model takes; the rest is named at its place.

    Messages without attachments stay the very objects that they were.
    """
    if not any(_attached(message) for message in request.messages):
        return request
    messages = tuple(_fitted(message, sight) for message in request.messages)
    used = {one.hash for message in messages for one in _attached(message)}
    contents = {name: data for name, data in request.contents.items() if name in used}
    return replace(request, messages=messages, contents=contents)


def refusal(error: Permanent | Transient, request: Request) -> AttachmentRefused | None:
    """Return the error that a refused attachment is, or None if it was about something else."""
    _, quote, said = str(error).partition(_QUOTE)
    if not request.contents or isinstance(error, ContextOverflow | Garbled):
        return None
    return AttachmentRefused(str(error)) if quote and _REFUSES.search(said) else None


def _attached(message: Message) -> Sequence[KeptAttachment]:
    return message.attachments if isinstance(message, UserMessage | ToolMessage) else ()


def _fitted(message: Message, sight: Sight) -> Message:
    attached = _attached(message)
    if not attached or not isinstance(message, UserMessage | ToolMessage):
        return message
    taken = tuple(one for one in attached if sight.takes(one))
    if len(taken) == len(attached):
        return message
    missed = "".join(f"\n{_unseen(one)}" for one in attached if one not in taken)
    return replace(message, text=message.text + missed, attachments=taken)


def _unseen(attachment: KeptAttachment) -> str:
    what = "does not see images" if attachment.media_type in IMAGES else "does not read PDFs"
    return f"[attachment {attachment.id} is not shown: this model {what}]"
