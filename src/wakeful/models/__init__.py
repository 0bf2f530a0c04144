"""Voices: the model protocol and the models that ship.

From: turn; tools, for what a model is told; operations, for what the doctor says of them.
To: net.
Never: knows a ledger.
"""
