"""Builds every room in path order; the runtime runs what comes out.

From: runtime.
To: services, doors, lanes, operations.
Never: decides anything by itself.
"""
