"""What an agent reads when its quiet hours are over and something is held for it."""

DIGEST = (
    "[Quiet hours are over. While they lasted, the following was held for you. Look through it, do "
    "what has to be done, and say what people should know; nothing here waits for an answer.]"
)


def more_held(count: int) -> str:
    """Say how much more is held than was shown."""
    noun = "item waits" if count == 1 else "items wait"
    return f"[{count} more {noun} in the inbox.]"
