"""Stand-in providers: servers that speak like the real ones, and misbehave as a plan says.

From: tests.
To: vocabulary.
Never: reaches a network beyond this machine.
"""
