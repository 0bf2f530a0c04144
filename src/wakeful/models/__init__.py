"""Voices: the model protocol and the models that ship.

From: turn; tools, for what a model is told; gate and lanes, for what an answer costs; operations,
for what the doctor says of them.
To: net.
Never: knows a ledger.
"""
