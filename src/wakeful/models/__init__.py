"""Voices: the model protocol and the models that ship.

From: turn.
To: vocabulary.
Never: knows a ledger.
"""
