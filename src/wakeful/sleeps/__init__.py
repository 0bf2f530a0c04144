"""The ledger of who sleeps, until when and why.

From: intake, gate, triggers, lanes; doors and views, which show it.
To: store.
Never: touches the timer that ends a sleep; a stale one finds its generation gone.
"""
