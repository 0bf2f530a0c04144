"""The ledger of what must be sent outside.

From: automations, turn, tools, gate; doors that send; views, which look; operations, which
    clean up.
To: attachments, store.
Never: sends anything itself.
"""
