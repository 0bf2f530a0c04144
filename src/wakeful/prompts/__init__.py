"""What models are told: the system prompt, fences and notes.

From: turn, lanes.
To: vocabulary.
Never: changes between two turns of the same configuration; prompts are cached by their bytes.
"""
