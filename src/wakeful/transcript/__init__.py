"""The ledger of what was said: sessions and the tree of their entries.

From: intake, turn, lanes, views.
To: store.
Never: changes or removes an entry.
"""
