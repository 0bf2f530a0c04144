"""The ground: the words every room shares, with no behaviour of their own.

From: every room above.
To: nothing.
Never: reads a clock other than `clock`, opens a file, knows a database.
"""
