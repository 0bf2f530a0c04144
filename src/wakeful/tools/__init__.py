"""Hands: tools, how they are described to models, and how they are run.

From: turn.
To: outbox, transcript, models (for what a model is told), store (ledger tools).
Never: lets a tool's failure escape as an exception; a failure is a result the model sees.
"""
