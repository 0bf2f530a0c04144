"""Who may do what: tokens, scopes, owners.

From: doors, cli.
To: store.
Never: keeps, logs or compares a secret in the clear.
"""
