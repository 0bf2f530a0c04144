"""The ledger of what must be sent outside.

From: turn, tools; doors that send; operations, which clean up.
To: attachments, store.
Never: sends anything itself.
"""
