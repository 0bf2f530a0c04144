"""The checker: compares the ledgers of everybody outside with the database, invariant by invariant.

From: tests, chaos.
To: vocabulary, the ledgers' row types.
Never: believes the runtime's own claims alone.
"""
