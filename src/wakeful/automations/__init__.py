"""Scheduled input into sessions: automations, their occurrences and their runs.

From: assembly, services, doors, views, commands, tools, lanes, turn, runtime.
To: prompts, intake, gate, broker, turns, transcript, timers, notices, outbox, access.
Never: waits for a turn; a run's end is written by whatever ends its stimulus.
"""
