-- Sessions whole: several transcripts in one session, branches in one transcript, compaction cycles.

-- The transcript that a session goes on in is in its own row; here are those before it.
CREATE TABLE past_transcripts (
    id TEXT PRIMARY KEY,
    session_key TEXT NOT NULL,
    branch TEXT NOT NULL,           -- that was the active one
    fork_depth BIGINT NOT NULL,     -- of that branch
    leaf_id TEXT,
    leaf_depth BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    ended_at BIGINT NOT NULL,
    ended_by TEXT NOT NULL          -- the command or the rule that began the next one
);
CREATE INDEX past_transcripts_of_session ON past_transcripts (session_key, ended_at);

-- The first branch of a transcript has the transcript's id and no row here.
CREATE TABLE branches (
    id TEXT PRIMARY KEY,
    transcript_id TEXT NOT NULL,
    parent TEXT NOT NULL,           -- the branch it left
    fork_depth BIGINT NOT NULL,     -- of the last entry they share
    created_at BIGINT NOT NULL
);
CREATE INDEX branches_of_transcript ON branches (transcript_id);

ALTER TABLE sessions ADD COLUMN parent TEXT;
ALTER TABLE sessions ADD COLUMN label TEXT;
ALTER TABLE sessions ADD COLUMN overrides TEXT NOT NULL DEFAULT '{}';
ALTER TABLE sessions ADD COLUMN fork_depth BIGINT NOT NULL DEFAULT -1;  -- of its branch
ALTER TABLE sessions ADD COLUMN seen_depth BIGINT NOT NULL DEFAULT -1;  -- what people have read
ALTER TABLE sessions ADD COLUMN cycle TEXT NOT NULL DEFAULT '';         -- the last compaction
ALTER TABLE sessions ADD COLUMN flushed_cycle TEXT;                     -- whose memories are written
ALTER TABLE sessions ADD COLUMN compactions BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN failed_compactions BIGINT NOT NULL DEFAULT 0;  -- in this cycle
ALTER TABLE sessions ADD COLUMN context_tokens BIGINT NOT NULL DEFAULT 0;      -- as last known

ALTER TABLE asks ADD COLUMN purpose TEXT NOT NULL DEFAULT 'reply';
