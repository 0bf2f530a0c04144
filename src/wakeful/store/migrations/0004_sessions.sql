-- Sessions whole: several transcripts in one session, branches in one transcript, compaction cycles.

-- The transcript that a session goes on in is in its own row; here are those before it.
CREATE TABLE past_transcripts (
    session_key TEXT NOT NULL,
    id TEXT NOT NULL,
    branch TEXT NOT NULL,           -- that was the active one
    fork_depth BIGINT NOT NULL,     -- of that branch
    leaf_id TEXT,
    leaf_depth BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    ended_at BIGINT NOT NULL,
    ended_by TEXT NOT NULL,         -- the command or the rule that began the next one
    PRIMARY KEY (session_key, id)
);
CREATE INDEX past_transcripts_by_id ON past_transcripts (id);

-- The first branch of a transcript has the transcript's id; it has a row once there is another.
CREATE TABLE branches (
    id TEXT PRIMARY KEY,
    transcript_id TEXT NOT NULL,
    session_key TEXT NOT NULL DEFAULT '',  -- that made it; empty: the transcript's first one
    parent TEXT,                    -- the branch it left
    fork_depth BIGINT NOT NULL,     -- of the last entry they share
    created_at BIGINT NOT NULL
);
CREATE INDEX branches_of_transcript ON branches (transcript_id);
-- The rare entries that are looked for among all others.
CREATE INDEX entries_marks ON entries (branch, kind, depth) WHERE kind IN ('compaction', 'label');

-- A session that is gone; what the ledgers still say of it is nobody else's business.
CREATE TABLE deleted_sessions (
    key TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    deleted_at BIGINT NOT NULL
);
-- Transcripts of deleted sessions, until their entries are removed.
CREATE TABLE discarded_transcripts (
    id TEXT PRIMARY KEY,
    discarded_at BIGINT NOT NULL
);
CREATE INDEX stimuli_held ON stimuli (session_key) WHERE state = 'held';
CREATE INDEX timers_of_target ON timers (target);

ALTER TABLE sessions ADD COLUMN parent TEXT;
ALTER TABLE sessions ADD COLUMN label TEXT;
ALTER TABLE sessions ADD COLUMN overrides TEXT NOT NULL DEFAULT '{}';
ALTER TABLE sessions ADD COLUMN resets TEXT NOT NULL DEFAULT '[]';  -- that wait for their turn
ALTER TABLE sessions ADD COLUMN fork_depth BIGINT NOT NULL DEFAULT -1;  -- of its branch
ALTER TABLE sessions ADD COLUMN seen_depth BIGINT NOT NULL DEFAULT -1;  -- what people have read
ALTER TABLE sessions ADD COLUMN cycle TEXT NOT NULL DEFAULT '';         -- the last compaction
ALTER TABLE sessions ADD COLUMN flushed_cycle TEXT;                     -- whose memories are written
ALTER TABLE sessions ADD COLUMN compactions BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN failed_compactions BIGINT NOT NULL DEFAULT 0;  -- in this cycle
ALTER TABLE sessions ADD COLUMN context_tokens BIGINT NOT NULL DEFAULT 0;      -- as last known

ALTER TABLE asks ADD COLUMN purpose TEXT NOT NULL DEFAULT 'reply';
