-- Heartbeats: when they are due, whether the operator wants them, and what came of the last.
CREATE TABLE heartbeats (
    agent_id TEXT PRIMARY KEY,
    every_ms BIGINT NOT NULL,       -- that the timer was set by; 0: it is off
    phase_at BIGINT NOT NULL,       -- an instant at which it was due: the next ones count from it
    is_off INTEGER NOT NULL,        -- by the operator's word
    last_run_at BIGINT,
    last_outcome TEXT
);

-- What a session was told last by a heartbeat: the same is not told again within a day.
ALTER TABLE sessions ADD COLUMN last_heartbeat_text TEXT;
ALTER TABLE sessions ADD COLUMN last_heartbeat_sent_at BIGINT;
