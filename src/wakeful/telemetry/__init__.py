"""What the runtime counts and says about itself.

From: every room above the floor.
To: vocabulary.
Never: decides anything, or names a session or a raw source in a label.
"""
