"""May this wake, may this ask? Halts, storms, loops, budgets.

From: intake, lanes, turn, triggers; doors, views and operations, which show it, commands, services.
To: store, bus; access, broker, turns, notices; models, for their prices.
Never: calls a model to find out.
"""
