"""Builds every room in path order; the runtime runs what comes out.

From: runtime.
To: doors, lanes, operations.
Never: decides anything by itself.
"""
