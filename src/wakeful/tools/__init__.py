"""Hands: tools, how they are described to models, and how they are run.

From: turn, lanes.
To: outbox, gate, broker, access, transcript, turns, triggers, automations, approvals, views,
    prompts, models (for what a model is told), net, workspace, attachments, intake (which measures
    what is attached).
Never: lets a tool's failure escape as an exception; a failure is a result the model sees.
"""
