"""How many tokens messages take, as far as it can be known without asking."""

from wakeful.vocabulary.message import (
    AssistantMessage,
    Message,
    Text,
    Thinking,
    ToolCall,
    encode_message,
)

CHARACTERS_PER_TOKEN = 4

# A reply that broke off says nothing about the size of what was sent.
_WHOLE = frozenset({"stop", "length", "tool_use"})


def tokens_of(message: Message) -> int:
    """Return an estimate of the tokens that a message takes in a request."""
    return -(-_characters(message) // CHARACTERS_PER_TOKEN)


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
