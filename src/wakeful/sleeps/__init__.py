"""The ledger of who sleeps, until when and why.

From: intake, tools, triggers.
To: store.
Never: touches the timer that ends a sleep; a stale one finds its generation gone.
"""
