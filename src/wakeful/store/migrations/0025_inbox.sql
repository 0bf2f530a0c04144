-- The inbox is a view of the ledger: what waits there until its agent asks for it, or a turn of
-- the agent's Activity begins.
ALTER TABLE stimuli ADD COLUMN dedup_key TEXT;
ALTER TABLE stimuli ADD COLUMN claimed_at BIGINT;  -- when it was given to a turn
ALTER TABLE stimuli ADD COLUMN in_inbox INTEGER NOT NULL DEFAULT 0;

UPDATE stimuli SET in_inbox = 1 WHERE kind = 'inbox' OR state = 'held';

-- With the source: whoever looks for those of one reads nothing else of the others.
CREATE INDEX inbox_items ON stimuli (id, source) WHERE in_inbox = 1;
-- In the order in which a turn is given what is held in its session.
DROP INDEX stimuli_held;
CREATE INDEX stimuli_held ON stimuli (session_key, priority, seq, expires_at) WHERE state = 'held';

-- How many items of the inbox have not ended, of each source and, under the empty name, in all.
CREATE TABLE inbox_counts (
    source TEXT PRIMARY KEY,        -- its kind and its name
    waiting BIGINT NOT NULL
);
INSERT INTO inbox_counts (source, waiting)
    SELECT '', COUNT(*) FROM stimuli WHERE in_inbox = 1 AND settled_at IS NULL;
INSERT INTO inbox_counts (source, waiting)
    SELECT kind || ':' || source, COUNT(*) FROM stimuli
    WHERE in_inbox = 1 AND settled_at IS NULL GROUP BY kind || ':' || source;

-- A storm is over when its source has kept still for a whole window.
ALTER TABLE storms ADD COLUMN tripped_at BIGINT;
