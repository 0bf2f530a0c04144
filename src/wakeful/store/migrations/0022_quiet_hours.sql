-- What a person wants whatever the hour: asked for by hand, or a job of their own.
ALTER TABLE stimuli ADD COLUMN ignores_quiet_hours INTEGER NOT NULL DEFAULT 0;

-- Which tick greeted a session: one that never reached a model greeted nobody.
ALTER TABLE greetings ADD COLUMN stimulus_id TEXT;
