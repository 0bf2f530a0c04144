"""The HTTP door: one table of endpoints, one guard before all of them.

From: runtime.
To: intake, views, commands, access; the ledgers that it shows, and gate, for what is halted.
Never: answers a request that the guard has not let through.
"""
