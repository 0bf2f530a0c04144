"""What agents ask people: may this call run, and questions; a ledger of both, and the answers.

From: lanes, turn, tools, commands, views, doors, services, operations, assembly.
To: prompts, intake, gate, broker, turns, timers, notices, access.
Never: runs a tool; an answer is a stimulus, and the turn that it opens runs what was granted.
"""
