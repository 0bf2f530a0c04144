-- A stimulus and its turn say their kind, of which the origin is a part.
-- min_binary: 2
ALTER TABLE stimuli RENAME COLUMN origin TO kind;
ALTER TABLE turns RENAME COLUMN origin TO kind;
UPDATE stimuli SET kind = 'automation.bound' WHERE kind = 'automation';
UPDATE stimuli SET kind = 'subagent.message' WHERE kind = 'subagent';
UPDATE stimuli SET kind = CASE WHEN source IN ('compaction', 'memory-flush')
    THEN 'system.' || source ELSE 'system.event' END WHERE kind = 'system';
UPDATE turns SET kind = 'automation.bound' WHERE kind = 'automation';
UPDATE turns SET kind = 'subagent.message' WHERE kind = 'subagent';
UPDATE turns SET kind = CASE WHEN source IN ('compaction', 'memory-flush')
    THEN 'system.' || source ELSE 'system.event' END WHERE kind = 'system';
-- How much of its session a turn sees, which tools its source was granted, where its end is filed.
ALTER TABLE turns ADD COLUMN view TEXT NOT NULL DEFAULT 'full';
ALTER TABLE turns ADD COLUMN granted TEXT NOT NULL DEFAULT '[]';
ALTER TABLE turns ADD COLUMN reports_to TEXT;
-- A stop holds for what was said before it, also while that is not cancelled yet.
ALTER TABLE lanes ADD COLUMN stopped_seq BIGINT NOT NULL DEFAULT 0;
