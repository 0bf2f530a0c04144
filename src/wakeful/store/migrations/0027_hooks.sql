-- How much came in by each hook, and when last.
CREATE INDEX stimuli_of_hook ON stimuli (source, accepted_at) WHERE kind = 'webhook';
