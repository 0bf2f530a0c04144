"""What a model is shown of the attachments in its conversation, request by request.

Images and documents go along as they are; a text is put into the message, as data from outside;
of everything else, and of what cannot be shown, the message says why.
"""

import asyncio
import base64
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from wakeful import attachments
from wakeful.models.sight import Sight
from wakeful.prompts import notes
from wakeful.prompts.fence import fenced
from wakeful.store.database import Store
from wakeful.vocabulary.media import DOCUMENT, IMAGES, dimensions, media_type_of, text_of
from wakeful.vocabulary.message import AssistantMessage, Message, ToolMessage, UserMessage
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import KeptAttachment
from wakeful.vocabulary.tokens import LARGEST_SHOWN_TEXT

LARGEST_IMAGE = 3_750_000  # bytes: what every provider takes, 5 MB in base64
WIDEST_IMAGE = 8_000  # pixels
MOST_SHOWN = 20  # images and documents of one request; the newest
LARGEST_SHOWN = 20 * 1024 * 1024  # base64 of one request
LARGEST_TEXTS = 4 * LARGEST_SHOWN_TEXT  # bytes of text files that are shown with one message

GONE = "its bytes are gone"
CROWDED = "newer ones took its place; look at it again with read_attachment"
NO_TEXT = "it is neither text nor an image that a model takes"

_HEAD = (LARGEST_SHOWN_TEXT + 3) // 3 * 4  # base64 that holds what is shown of a text


class Look(Record):
    """What an attachment turned out to be."""

    media_type: str | None = None  # of an image or a document
    text: str | None = None  # how a text file begins
    trouble: str | None = None  # why nothing of it can be shown


class Showing:
    """Reads what is attached once per attempt, off the event loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._looks: dict[str, Look] = {}
        self._contents: dict[str, str] = {}
        self._made: dict[tuple[Message, frozenset[str]], Message] = {}

    async def show(
        self, messages: Sequence[Message], refused: frozenset[str], sight: Sight
    ) -> tuple[Sequence[Message], Mapping[str, str]]:
        """Return the messages as a model reads them, and the bytes that go along."""
        attached = [one for message in messages for one in attached_to(message)]
        if not attached:
            return messages, {}
        await self._look(attached, sight)
        chosen = self._chosen(attached, refused)
        shown = [self._message(message, chosen, refused) for message in messages]
        return shown, {one: self._contents[one] for one in chosen if one in self._contents}

    async def _look(self, attached: Sequence[KeptAttachment], sight: Sight) -> None:
        new = {one.hash: one for one in attached if one.hash not in self._looks}
        if not new:
            return
        heads = await attachments.beginnings(self._store, list(new), _HEAD)
        looks = await asyncio.to_thread(
            lambda: {name: _look(one, heads.get(name)) for name, one in new.items()}
        )
        wanted = [name for name, look in looks.items() if _takes(sight, new[name], look)]
        if wanted:
            whole = await attachments.read(self._store, wanted)
            checked = await asyncio.to_thread(
                lambda: {name: _checked(looks[name], data) for name, data in whole.items()}
            )
            self._contents |= whole
            looks |= dict.fromkeys(wanted, Look(trouble=GONE)) | checked
        self._looks |= looks

    def _chosen(
        self, attached: Sequence[KeptAttachment], refused: frozenset[str]
    ) -> frozenset[str]:
        """Return the images and documents that go along: the newest, as many as fit."""
        chosen: set[str] = set()
        left = LARGEST_SHOWN
        for one in reversed(attached):
            look = self._looks[one.hash]
            is_shown = look.media_type is not None and look.trouble is None
            if not is_shown or one.hash in refused or one.hash in chosen:
                continue
            left -= -(-one.size // 3) * 4
            if left < 0 or len(chosen) == MOST_SHOWN:
                break
            chosen.add(one.hash)
        return frozenset(chosen)

    def _message(
        self, message: Message, chosen: frozenset[str], refused: frozenset[str]
    ) -> Message:
        attached = attached_to(message)
        if not attached or not isinstance(message, UserMessage | ToolMessage):
            return message
        hashes = frozenset(one.hash for one in attached)
        key = message, hashes & (chosen | refused)
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self._made_of(message, chosen, refused)
        return made

    def _made_of(
        self, message: UserMessage | ToolMessage, chosen: frozenset[str], refused: frozenset[str]
    ) -> Message:
        parts = [message.text]
        along: list[KeptAttachment] = []
        left = LARGEST_TEXTS
        for one in message.attachments:
            look = self._looks[one.hash]
            if look.text is not None and left > 0:
                parts.append(_excerpt(one, look.text))
                left -= min(one.size, LARGEST_SHOWN_TEXT)
            elif one.hash in chosen and look.media_type is not None:
                along.append(replace(one, media_type=look.media_type))
            elif one.hash not in refused:
                parts.append(notes.not_shown(one, _why_not(look)))
        return replace(message, text="\n\n".join(parts), attachments=tuple(along))


def attached_to(message: Message) -> Sequence[KeptAttachment]:
    return message.attachments if isinstance(message, UserMessage | ToolMessage) else ()


def newest(messages: Sequence[Message], refused: frozenset[str]) -> list[KeptAttachment]:
    """Return what the model had not answered yet when it was refused, else everything before."""
    found: dict[str, KeptAttachment] = {}
    for message in reversed(messages):
        if isinstance(message, AssistantMessage) and found:
            break
        found |= {one.hash: one for one in attached_to(message) if one.hash not in refused}
    return list(found.values())


def _takes(sight: Sight, attachment: KeptAttachment, look: Look) -> bool:
    if look.media_type is None or look.trouble is not None:
        return False
    return sight.takes(replace(attachment, media_type=look.media_type))


def _look(attachment: KeptAttachment, head: str | None) -> Look:
    """Tell by its first bytes what an attachment is."""
    if head is None:
        return Look(trouble=GONE)
    data = base64.b64decode(head)[:LARGEST_SHOWN_TEXT]
    media_type = media_type_of(data)
    if media_type in IMAGES and attachment.size > LARGEST_IMAGE:
        return Look(media_type=media_type, trouble=f"it is larger than {LARGEST_IMAGE} bytes")
    if media_type is not None:
        return Look(media_type=media_type)
    text = text_of(data, attachment.media_type, is_whole=attachment.size <= len(data))
    if text is not None:
        return Look(text=text)
    is_image = attachment.media_type.startswith("image/")
    return Look(trouble="it is no PNG, JPEG, GIF or WebP" if is_image else NO_TEXT)


def _checked(look: Look, data: str) -> Look:
    """Look at the whole of an image: what no provider could read is not sent."""
    if look.media_type is None or look.media_type == DOCUMENT:
        return look
    size = dimensions(base64.b64decode(data), look.media_type)
    if size is None:
        return replace(look, trouble="it is damaged")
    if max(size) > WIDEST_IMAGE:
        return replace(look, trouble=f"it is larger than {WIDEST_IMAGE} pixels")
    return look


def _excerpt(attachment: KeptAttachment, text: str) -> str:
    shown = fenced(text, source=f"attachment {attachment.id}", entry_id=attachment.hash)
    if attachment.size <= LARGEST_SHOWN_TEXT:
        return shown
    return (
        f"{shown}\n[the first {len(text)} characters of attachment {attachment.id}; "
        f"go on with read_attachment, offset {len(text)}]"
    )


def _why_not(look: Look) -> str:
    if look.trouble is not None:
        return look.trouble
    return "read it with read_attachment" if look.text is not None else CROWDED
