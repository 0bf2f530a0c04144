"""May this wake, may this ask? Halts, storms, loops.

From: intake, lanes, turn.
To: store.
Never: calls a model to find out.
"""
