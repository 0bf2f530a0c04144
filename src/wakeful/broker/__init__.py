"""The ledger of stimuli and lanes: accept, claim, settle, order.

From: automations, intake, lanes, turn, tools, triggers, approvals, commands, forecast; views and
    operations, which look,
gate.
To: attachments, store.
Never: decides what should happen to a stimulus; it only keeps what was decided.
"""
