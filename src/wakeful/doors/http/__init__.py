"""The HTTP door: one table of endpoints, one guard before all of them.

From: runtime.
To: messaging, naming, services, access, bus, intake, views, gate, timers, transcript, turns,
    outbox, sleeps, triggers, automations, approvals, webhooks.
Never: answers a request that the guard has not let through.
"""
