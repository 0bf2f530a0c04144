-- What an agent's lanes do and when it wakes next, without reading all of its lanes and timers.
ALTER TABLE timers ADD COLUMN agent_id TEXT NOT NULL DEFAULT '';  -- of its target
UPDATE timers SET agent_id = split_part(target, ':', 2) WHERE target LIKE 'agent:%:%';
CREATE INDEX timers_of_agent ON timers (agent_id, COALESCE(retry_at, due_at));
CREATE INDEX lanes_of_agent ON lanes (agent_id);
