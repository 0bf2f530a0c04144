"""Housekeeping: what keeps a runtime healthy while nobody looks.

From: runtime.
To: the ledgers, attachments, gate, intake, approvals, automations; models, for what they read at
    once.
Never: touches what is still open.
"""
