-- Activity: the feed over all that ended, and what of it nobody has read.

-- Which model answered a turn last.
ALTER TABLE turns ADD COLUMN model TEXT;
-- Whether an ended turn is for people to read who have no other conversation to read it in.
ALTER TABLE turns ADD COLUMN is_news INTEGER NOT NULL DEFAULT 0;
-- The newest ended turns: of all, of an agent, of a kind. An open one is in none of these.
CREATE INDEX turns_ended ON turns (ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX turns_ended_of_agent ON turns (agent_id, ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX turns_ended_of_kind ON turns (kind, ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX turns_news ON turns (agent_id, ended_at) WHERE is_news = 1;

ALTER TABLE notices ADD COLUMN session_key TEXT;    -- that it is about, if one is
DROP INDEX notices_by_time;
CREATE INDEX notices_by_time ON notices (created_at, id);
CREATE INDEX notices_of_agent_by_time ON notices (COALESCE(agent_id, ''), created_at, id);
CREATE INDEX notices_of_kind ON notices (kind, id);

-- Where sleeps began and ended; who sleeps now is in `sleeps`.
CREATE TABLE sleep_marks (
    id TEXT PRIMARY KEY,
    at BIGINT NOT NULL,
    sleep_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    session_key TEXT,
    edge TEXT NOT NULL,             -- entered, ended
    source TEXT NOT NULL,           -- whoever let it sleep, or woke it
    reason TEXT NOT NULL,           -- why it sleeps
    entered_at BIGINT NOT NULL,
    wake_at BIGINT NOT NULL         -- when it was to end
);
CREATE INDEX sleep_marks_by_time ON sleep_marks (at, id);
CREATE INDEX sleep_marks_of_agent ON sleep_marks (agent_id, at, id);

-- How far people have read what an agent did; '': what is no agent's.
CREATE TABLE activity_seen (
    agent_id TEXT PRIMARY KEY,
    seen_at BIGINT NOT NULL
);

-- Deliveries that people must look at.
CREATE INDEX deliveries_failed ON deliveries (id) WHERE state = 'failed';
