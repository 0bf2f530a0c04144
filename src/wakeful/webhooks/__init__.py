"""Webhooks in: what an operator chose of each hook, who may use it, and what its words become.

From: assembly, settings, doors, services, turn.
To: gate.
Never: reads a body before its sender has proved to have the secret.
"""
