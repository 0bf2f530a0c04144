-- Which tick greeted a session: one that never reached a model greeted nobody.
ALTER TABLE greetings ADD COLUMN stimulus_id TEXT;
