"""The inner sources of stimuli: what wakes an agent when nobody speaks to it.

From: assembly, turn, commands, forecast, tools, views, doors, services.
To: prompts, intake, gate, broker, turns, transcript, sleeps, timers, notices, access,
    workspace.
Never: asks a model; it files a stimulus and sets the next timer in the same commit.
"""
