"""How far people have read what agents did without being asked.

From: services, views and doors, which show it and move it.
To: bus, store.
Never: moves a mark back.
"""
