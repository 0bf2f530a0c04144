"""The ledger of who sleeps, until when and why.

From: intake, tools, triggers, lanes.
To: store.
Never: touches the timer that ends a sleep; a stale one finds its generation gone.
"""
