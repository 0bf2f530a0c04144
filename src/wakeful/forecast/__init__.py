"""The same schedule functions on a virtual clock, over a copy in memory: what is to come.

From: assembly, lanes.
To: triggers, gate, broker, timers, bus, store.
Never: writes to a database that keeps anything, or asks a model.
"""
