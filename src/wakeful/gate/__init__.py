"""May this wake, may this ask, may this leave? Halts, loops, quiet hours, budgets, the throttle.

From: automations, intake, lanes, turn, triggers, approvals, tools; doors, views and operations,
    which show it,
commands, forecast, services.
To: store, bus; access, broker, turns, timers, sleeps, notices, outbox; models, for their prices.
Never: calls a model to find out.
"""
