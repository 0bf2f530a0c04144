"""The ledger of what was said: sessions and the tree of their entries.

From: automations, intake, turn, lanes, views, tools, triggers, commands, doors; operations,
    which clean up.
To: attachments, store.
Never: changes an entry, or removes one that a session still has.
"""
