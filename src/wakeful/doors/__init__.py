"""Where outside meets inside: what comes in goes to intake, what goes out is read from a ledger.

From: runtime.
To: intake, views, commands, access, net; the ledgers that it shows, and gate, for what is halted.
Never: touches lanes, turn, tools or models.
"""
