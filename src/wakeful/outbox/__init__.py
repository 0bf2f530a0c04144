"""The ledger of what must be sent outside.

From: turn, tools, gate; doors that send; views, which look; operations, which clean up.
To: attachments, store.
Never: sends anything itself.
"""
