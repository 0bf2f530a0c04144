"""Read only: answers about turns, stimuli and sessions.

From: runtime, automation_verbs, doors, commands, tools, services.
To: the ledgers, attachments, gate, triggers, automations, approvals, prompts, intake.
Never: writes.
"""
