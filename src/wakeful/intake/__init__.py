"""The only way in: whatever may wake an agent is accepted here, in one commit.

From: doors, triggers, tools, timers.
To: gate, broker, turns, transcript, sleeps, bus.
Never: waits for a turn, or keeps anything in memory.
"""
