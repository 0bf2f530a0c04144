-- Why the wake of a sleep was refused when its time had come: whoever lifts that finds it.
ALTER TABLE sleeps ADD COLUMN refused TEXT;
CREATE INDEX sleeps_refused ON sleeps (agent_id, refused, owner) WHERE refused IS NOT NULL;
