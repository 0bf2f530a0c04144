"""Read only: answers about turns, stimuli and sessions.

From: runtime, doors, commands, tools.
To: the ledgers, gate.
Never: writes.
"""
