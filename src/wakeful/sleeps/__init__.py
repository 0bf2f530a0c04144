"""The ledger of who sleeps, until when and why, and of where sleeps began and ended.

From: intake, gate, triggers, lanes; doors, views and operations, which show or forget it.
To: store.
Never: touches the timer that ends a sleep; a stale one finds its generation gone.
"""
