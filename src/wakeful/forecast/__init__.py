"""The same schedule functions on a virtual clock, over a copy in memory: what is to come.

From: assembly.
To: store, timers, broker.
Never: writes to a database that keeps anything, or asks a model.
"""
