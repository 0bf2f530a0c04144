"""Where outside meets inside: what comes in goes to intake, what goes out is read from a ledger.

From: runtime, automation_verbs.
To: services, commands, access, intake, views, outbox, bus, gate, net, timers, transcript, turns,
    sleeps, triggers, automations, approvals, webhooks.
Never: touches lanes, turn, tools or models.
"""
