"""Voices: the model protocol and the models that ship.

From: turn; tools, for what a model is told.
To: vocabulary.
Never: knows a ledger.
"""
