"""Wire formats: what is sent to providers byte by byte, and how their answers are read.

From: models.
To: vocabulary.
Never: opens a connection, or knows a key.
"""
