"""The ledger of what must be sent outside.

From: turn, tools; doors that send.
To: store.
Never: sends anything itself.
"""
