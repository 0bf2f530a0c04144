"""Slash commands: what people may say to the runtime itself, from one table, at any door.

From: doors, runtime.
To: intake, views; access, broker, transcript, for what a command changes.
Never: becomes a turn by itself; a command that has a text for the agent files that text.
"""
