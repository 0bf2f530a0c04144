-- Quiet by the operator's word: until an instant, or the hours of the settings ended before time.
CREATE TABLE quiet (
    agent_id TEXT PRIMARY KEY,
    is_quiet INTEGER NOT NULL,
    since BIGINT NOT NULL,
    until BIGINT NOT NULL
);

-- What a person wants whatever the hour: asked for by hand, or a job of their own.
ALTER TABLE stimuli ADD COLUMN ignores_quiet_hours INTEGER NOT NULL DEFAULT 0;

-- What is parked for one reason goes on lane by lane: each step finds the next lanes at once.
DROP INDEX stimuli_parked;
CREATE INDEX stimuli_parked ON stimuli (agent_id, state_reason, session_key)
    WHERE state = 'parked';

-- Which tick greeted a session: one that never reached a model greeted nobody.
ALTER TABLE greetings ADD COLUMN stimulus_id TEXT;
