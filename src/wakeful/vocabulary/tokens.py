"""How many tokens messages take, as far as it can be known without asking."""

from collections.abc import Sequence

from wakeful.vocabulary.media import DOCUMENT
from wakeful.vocabulary.message import (
    AssistantMessage,
    Message,
    Text,
    Thinking,
    ToolCall,
    encode_message,
)
from wakeful.vocabulary.stimulus import KeptAttachment

CHARACTERS_PER_TOKEN = 4

IMAGE_TOKENS = 1_600  # of one image, whatever its size: what the large ones take
PAGE_TOKENS = 2_000  # of a page of a document, seen and read
PAGE_BYTES = 50_000  # of one page, as far as anybody knows without opening it
MOST_PAGES = 100
LARGEST_SHOWN_TEXT = 16_384  # bytes of a text file that are shown with its message

# A reply that broke off says nothing about the size of what was sent.
_WHOLE = frozenset({"stop", "length", "tool_use"})


def tokens_of(message: Message) -> int:
    """Return an estimate of the tokens that a message takes in a request."""
    tokens = -(-_characters(message) // CHARACTERS_PER_TOKEN)
    if isinstance(message, AssistantMessage):
        return tokens
    return tokens + tokens_of_attachments(message.attachments)


def tokens_of_attachments(attachments: Sequence[KeptAttachment]) -> int:
    """Return an estimate of the tokens that attachments take where a model is shown them."""
    return sum(map(_tokens_of_attachment, attachments))


def counted(message: Message) -> int | None:
    """Return how many tokens the model counted up to and with this message, if it did."""
    if not isinstance(message, AssistantMessage) or message.stop_reason not in _WHOLE:
        return None
    usage = message.usage
    return usage.input + usage.output if usage.input > 0 else None


def _characters(message: Message) -> int:
    if not isinstance(message, AssistantMessage):
        return len(message.text)
    size = 0
    for block in message.content:
        match block:
            case Text() | Thinking():
                size += len(block.text)
            case ToolCall():
                size += len(block.name) + len(encode_message(block.arguments))
    return size


def _tokens_of_attachment(attachment: KeptAttachment) -> int:
    if attachment.media_type.startswith("image/"):
        return IMAGE_TOKENS
    if attachment.media_type == DOCUMENT:
        return min(attachment.size // PAGE_BYTES + 1, MOST_PAGES) * PAGE_TOKENS
    return min(attachment.size, LARGEST_SHOWN_TEXT) // CHARACTERS_PER_TOKEN
