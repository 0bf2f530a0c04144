"""Order: each session is one lane, and at most one turn runs in it.

From: runtime.
To: turn, intake, broker.
Never: keeps anything in memory that the ledger could not give back.
"""
