"""Order: each session is one lane, and at most one turn runs in it.

From: runtime.
To: turn, forecast, approvals, automations, intake, gate, prompts, tools; the ledgers; models, for
    their prices.
Never: keeps anything in memory that the ledger could not give back.
"""
