"""Who may do what: tokens, scopes, owners.

From: automations, doors, commands, cli, settings, tools, intake, gate, triggers, approvals,
    services, views.
To: store.
Never: keeps, logs or compares a secret in the clear.
"""
