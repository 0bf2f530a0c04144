-- What people should know, once: one row for each kind, subject and episode of it.
CREATE TABLE notices (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,             -- storm, loop, budget, …
    subject TEXT NOT NULL,          -- whom or what it is about
    episode TEXT NOT NULL,          -- which time it happened
    agent_id TEXT,                  -- whose Activity it belongs to; null: everybody's
    text TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (kind, subject, episode)
);
CREATE INDEX notices_of_agent ON notices (agent_id, id);
CREATE INDEX notices_of_subject ON notices (kind, subject, id);
CREATE INDEX notices_by_time ON notices (created_at);
