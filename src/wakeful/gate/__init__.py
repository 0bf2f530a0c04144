"""May this wake, may this ask? Halts, storms, loops.

From: intake, lanes, turn, triggers; doors, views and operations, which show it, commands.
To: store, broker.
Never: calls a model to find out.
"""
