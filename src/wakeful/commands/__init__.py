"""Slash commands: what people may say to the runtime itself, from one table, at any door.

From: doors.
To: services, intake, views, triggers, automations, approvals, prompts, access, broker, gate,
    transcript.
Never: becomes a turn by itself; a command that has a text for the agent files that text.
"""
