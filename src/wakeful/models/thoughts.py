"""Whose thoughts a model gets back: its own, by the interface over which they came.

The library would show any other to it as words, or in a field of a name that nobody knows.
"""

from collections.abc import Callable

from pydantic_ai.models import Model

from wakeful.vocabulary.message import AssistantMessage, Thinking

Takes = Callable[[AssistantMessage, Thinking], bool]

# Fields of Chat Completions; a thought of any other interface has another id, or none.
_FIELDS = ("content", "reasoning", "reasoning_content", "reasoning_text")


def takes_back(model: Model) -> Takes:
    """Return the rule by which a model gets a thought of an earlier reply back."""
    kinds = {kind.__name__ for kind in type(model).__mro__}
    is_chat, is_responses = "OpenAIChatModel" in kinds, "OpenAIResponsesModel" in kinds

    def takes(message: AssistantMessage, thought: Thinking) -> bool:
        if message.provider != model.system:
            return False
        is_field = (thought.keepsake or {}).get("id") in _FIELDS
        return is_field if is_chat else not (is_responses and is_field)

    return takes
