"""The floor: durable transactions over SQLite or PostgreSQL.

From: every ledger.
To: vocabulary.
Never: knows what a table means; only `store` imports a database driver.
"""
