-- Lanes in which nothing waits but what may run later: some places are kept from them.
ALTER TABLE lanes ADD COLUMN is_later INTEGER NOT NULL DEFAULT 0;
DROP INDEX lanes_ready;
CREATE INDEX lanes_ready ON lanes (pool, is_later, ready_at)
    WHERE owner IS NULL AND ready_at IS NOT NULL;
