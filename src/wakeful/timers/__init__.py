"""The ledger of what is due, and the service that fires it.

From: triggers, automations, approvals, tools, intake, gate, forecast, runtime; doors, views and
    operations, which look.
To: store.
Never: knows what a timer means; that is its handler's business.
"""
