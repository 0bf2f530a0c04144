"""Transcripts as files: pi's JSONL, version 3, out and in; Claude Code's, in.

From: doors, cli, intake; operations, which clean up; turn, which reads edits of the context.
To: attachments, store, bus.
Never: shows a transcript that is not whole.
"""
