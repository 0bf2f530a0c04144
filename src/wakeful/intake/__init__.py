"""The only way in: whatever may wake an agent is accepted here, in one commit.

From: automations, doors, commands, triggers, approvals, tools, lanes, turn, timers, services,
    views; operations,
    which clean up.
To: gate, broker, turns, transcript, timers, sleeps, notices, access, attachments.
Never: waits for a turn, or keeps anything in memory.
"""
