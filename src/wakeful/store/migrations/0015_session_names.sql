-- What a session took over from others when it forked off: their branches, down to a depth.
CREATE TABLE inherited_branches (
    session_key TEXT NOT NULL,
    branch TEXT NOT NULL,
    last_depth BIGINT NOT NULL,     -- of the last entry that they share
    PRIMARY KEY (branch, session_key)
);
CREATE INDEX inherited_branches_of_session ON inherited_branches (session_key);
INSERT INTO inherited_branches (session_key, branch, last_depth)
WITH RECURSIVE stands (session_key, branch, last_depth) AS (
    SELECT session_key, parent, fork_depth FROM branches
    WHERE parent IS NOT NULL AND session_key <> ''
    UNION ALL
    SELECT stands.session_key, older.parent, older.fork_depth
    FROM stands JOIN branches older ON older.id = stands.branch WHERE older.parent IS NOT NULL
)
SELECT session_key, branch, MAX(last_depth) FROM stands
WHERE session_key IN (SELECT key FROM sessions) GROUP BY session_key, branch;

-- What a door last told of a peer or room, how a session came of its parent, and what nobody read.
ALTER TABLE sessions ADD COLUMN display_name TEXT;
ALTER TABLE sessions ADD COLUMN subject TEXT;
ALTER TABLE sessions ADD COLUMN parent_kind TEXT;
ALTER TABLE sessions ADD COLUMN unread BIGINT NOT NULL DEFAULT 0;
UPDATE sessions SET parent_kind = CASE WHEN key LIKE parent || ':thread:%' THEN 'thread'
    ELSE 'fork' END WHERE parent IS NOT NULL;

-- What was said in rooms to others than the agent, until its next turn there.
CREATE TABLE overheard (
    id TEXT PRIMARY KEY,
    session_key TEXT NOT NULL,
    source TEXT NOT NULL,
    text TEXT NOT NULL,
    is_external INTEGER NOT NULL,
    at BIGINT NOT NULL
);
CREATE INDEX overheard_in ON overheard (session_key, id);
CREATE INDEX overheard_by_time ON overheard (at);
