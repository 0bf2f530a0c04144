"""The command line: one file per group of verbs.

From: a shell.
To: a running server over HTTP; settings, operations and the database while there is none.
Never: writes to a database that a server has open, or shows a traceback unasked.
"""
