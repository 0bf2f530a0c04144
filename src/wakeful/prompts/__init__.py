"""What models are told: the system prompt, files of the workspace, fences and notes.

From: automations, turn, lanes, tools, views, triggers, approvals, commands.
To: workspace, vocabulary.
Never: changes between two turns while nobody changes settings or files; bytes are cached.
"""
