"""What an operator may choose: `wakeful.yaml` and the environment become frozen settings.

From: cli, runtime.
To: intake, turn, models, vocabulary.
Never: lets a key pass that means nothing, or shows a secret in a message.
"""
