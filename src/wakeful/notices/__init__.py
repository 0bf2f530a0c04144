"""The ledger of what people should know once.

From: automations, intake, gate, triggers, approvals; doors, views and operations, which show or
    forget it.
To: bus, store.
Never: tells the same twice; an episode has one row.
"""
