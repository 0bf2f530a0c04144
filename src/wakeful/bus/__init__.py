"""The ledger of what happened, and its readers.

From: automations, every room that changes something; doors that show it.
To: store.
Never: decides anything; no state of the product is derived from events.
"""
