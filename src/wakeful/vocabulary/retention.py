"""How long what is settled is kept; transcripts are kept until somebody deletes them."""

from wakeful.vocabulary.record import Record


class Retention(Record):
    """Days and numbers; what is beyond either goes."""

    ledger_days: int = 90  # stimuli, turns, deliveries
    event_days: int = 7
    events: int = 1_000_000
    run_days: int = 30  # records of what automations did
    runs_per_job: int = 1_000
