-- The list of sessions, the newest first, reads as many rows as it shows.
CREATE INDEX sessions_made ON sessions (created_at, key);
