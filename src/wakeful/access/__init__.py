"""Who may do what: tokens, scopes, owners.

From: automations, automation_verbs, doors, commands, cli, settings, tools, intake, gate, triggers,
    approvals, services, views.
To: store.
Never: keeps, logs or compares a secret in the clear.
"""
