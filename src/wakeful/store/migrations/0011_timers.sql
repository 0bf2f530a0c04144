-- Whose a timer is, and when one that failed is tried again.
ALTER TABLE timers ADD COLUMN owner_kind TEXT NOT NULL DEFAULT 'session';  -- session, agent, job
ALTER TABLE timers ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;         -- tries in a row
ALTER TABLE timers ADD COLUMN retry_at BIGINT;                             -- null: when it is due
DROP INDEX timers_due;
CREATE INDEX timers_next ON timers (COALESCE(retry_at, due_at), id);
