"""The ledger of what must be sent outside.

From: turn, tools; doors that send; views, which look; operations, which clean up.
To: attachments, store.
Never: sends anything itself.
"""
