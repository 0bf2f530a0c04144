-- People name automations, and look at those that are on or off; each list begins with the newest.
CREATE INDEX automations_by_name ON automations (name, id);
CREATE INDEX automations_by_state ON automations (disabled_reason, id);
