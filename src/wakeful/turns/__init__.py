"""The ledger of turns: their rows, what they asked of models and what they asked of tools.

From: automations, intake, gate, lanes, turn, tools, triggers, approvals; doors, views and
    operations, which
look.
To: store.
Never: talks to a model or a tool.
"""
