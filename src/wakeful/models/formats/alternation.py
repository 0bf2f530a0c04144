"""Conversations in which people and the model take turns strictly, beginning with a person.

The templates of many open models want them so, and so do some gateways; everybody else takes
messages as they were said.
"""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from wakeful.models.formats.format import NO_TEXT
from wakeful.vocabulary.message import AssistantMessage, Message, UserMessage

# How servers and templates say that they want it so.
USER_FIRST = re.compile(
    r"roles must alternate|first message must use|must (?:start|begin) with a user", re.IGNORECASE
)


def alternating(messages: Sequence[Message]) -> list[Message]:
    """Return messages of which no two of one side stand in a row."""
    found: list[Message] = []
    for message in messages:
        last = found[-1] if found else None
        match last, message:
            case UserMessage(), UserMessage():
                text = f"{last.text}\n\n{message.text}"
                attachments = (*last.attachments, *message.attachments)
                found[-1] = replace(last, text=text, attachments=attachments)
            case AssistantMessage(), AssistantMessage() if last.provider == message.provider:
                found[-1] = replace(message, content=(*last.content, *message.content))
            case _:
                found.append(message)
    if found and isinstance(found[0], AssistantMessage):
        found.insert(0, UserMessage(text=NO_TEXT))
    return found
