-- The ledger of one session, newest first.

CREATE INDEX stimuli_of_session ON stimuli (session_key, id);
