"""Transcripts as files: pi's JSONL, version 3, out of the ledger and into it.

From: doors, cli; operations, which clean up; turn, which reads edits of the context.
To: attachments, store, bus.
Never: shows a transcript that is not whole.
"""
