"""The one outbound HTTP client: what leaves this machine by HTTP leaves here.

From: doors, tools, models.
To: vocabulary.
Never: connects to an address that it has not judged, follows a redirect, or reads the environment.
"""
