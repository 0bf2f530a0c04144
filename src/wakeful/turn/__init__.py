"""Thought: a turn from its opening to its end, every step a commit.

From: lanes.
To: tools, triggers, automations, approvals, models, prompts, intake, gate, workspace; the ledgers,
    attachments.
Never: starts a model call or a tool before the commit that says so.
"""
