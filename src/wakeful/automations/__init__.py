"""Scheduled input into sessions: automations, their occurrences and their runs.

From: assembly, services, views, doors, commands, automation_verbs, lanes, turn, tools,
    operations.
To: prompts, intake, gate, broker, turns, transcript, timers, notices, outbox, access,
    bus.
Never: waits for a turn; a run's end is written by whatever ends its stimulus.
"""
