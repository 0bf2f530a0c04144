-- How much came in by each hook, and when last.
CREATE INDEX stimuli_of_hook ON stimuli (source, accepted_at) WHERE kind = 'webhook';

-- All that is asked of what waits in a lane stands in the index, so that nobody looks at what is
-- held or settled there: it may be thousands of rows.
DROP INDEX stimuli_waiting;
CREATE INDEX stimuli_waiting
    ON stimuli (session_key, priority, place, seq, kind, is_debounced, due_at, trust, state)
    WHERE state IN ('pending', 'parked');
