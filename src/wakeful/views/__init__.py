"""Read only: answers about turns, stimuli and sessions.

From: runtime, doors.
To: the ledgers.
Never: writes.
"""
