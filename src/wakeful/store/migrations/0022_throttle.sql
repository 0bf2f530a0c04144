-- Messages that nobody asked for: too many within an hour wait, and leave together as one digest.

ALTER TABLE deliveries ADD COLUMN unprompted_by TEXT;  -- the agent that sent it without being asked
ALTER TABLE deliveries ADD COLUMN sent_with TEXT;      -- the digest that it left with
ALTER TABLE deliveries ADD COLUMN parts INTEGER NOT NULL DEFAULT 0;  -- of a digest

CREATE INDEX deliveries_unprompted ON deliveries (unprompted_by, target, filed_at)
    WHERE unprompted_by IS NOT NULL AND sent_with IS NULL;
CREATE INDEX deliveries_held ON deliveries (target, unprompted_by, id) WHERE state = 'held';
CREATE INDEX deliveries_sent_with ON deliveries (sent_with) WHERE sent_with IS NOT NULL;

-- What a turn used, as a line that ends its reply where the session wants it; no part of the reply.
ALTER TABLE turns ADD COLUMN usage_line TEXT;
ALTER TABLE deliveries ADD COLUMN usage_line TEXT;
