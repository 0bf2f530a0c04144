"""Housekeeping: what keeps a runtime healthy while nobody looks.

From: runtime.
To: the ledgers, attachments, gate, intake.
Never: touches what is still open.
"""
