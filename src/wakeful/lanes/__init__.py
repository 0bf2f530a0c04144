"""Order: each session is one lane, and at most one turn runs in it.

From: runtime.
To: turn, approvals, automations, intake, gate, prompts, tools; models, for their prices; the
    ledgers.
Never: keeps anything in memory that the ledger could not give back.
"""
