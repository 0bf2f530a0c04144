-- What agents may spend: one row per agent and scope, with the day that its numbers are of.
-- Money is kept in whole billionths of a dollar: what is set aside and given back adds up to 0.

CREATE TABLE budgets (
    agent_id TEXT NOT NULL,
    scope TEXT NOT NULL,            -- 'agent', 'origin:tick', 'source:cron:daily'
    day BIGINT NOT NULL,            -- the number of the day in the user's zone; it never goes back
    cap BIGINT,                     -- as it was last known, raises included; NULL: no limit
    spent BIGINT NOT NULL,
    reserved BIGINT NOT NULL,       -- for questions that are not answered yet
    others BIGINT NOT NULL,         -- of both, what no person said or caused
    turns BIGINT NOT NULL,          -- that were no person's own
    unpriced BIGINT NOT NULL,       -- answers whose price nobody knows
    raised_money BIGINT NOT NULL,
    raised_turns BIGINT NOT NULL,
    raised_until BIGINT NOT NULL,
    is_warned INTEGER NOT NULL,     -- people were told that most of it is spent
    is_exhausted INTEGER NOT NULL,  -- and that all of it is
    PRIMARY KEY (agent_id, scope)
);

-- A question is also the reservation of what it may cost.
ALTER TABLE asks ADD COLUMN reserved BIGINT NOT NULL DEFAULT 0;
ALTER TABLE asks ADD COLUMN max_tokens BIGINT;
ALTER TABLE asks ADD COLUMN day BIGINT NOT NULL DEFAULT 0;
ALTER TABLE asks ADD COLUMN scopes TEXT NOT NULL DEFAULT '';
ALTER TABLE asks ADD COLUMN for_people INTEGER NOT NULL DEFAULT 1;
ALTER TABLE asks ADD COLUMN cost BIGINT;            -- once it is settled; NULL: nobody knows
ALTER TABLE asks ADD COLUMN is_estimate INTEGER NOT NULL DEFAULT 0;
ALTER TABLE asks ADD COLUMN input_tokens BIGINT NOT NULL DEFAULT 0;
ALTER TABLE asks ADD COLUMN output_tokens BIGINT NOT NULL DEFAULT 0;
ALTER TABLE asks ADD COLUMN cache_read BIGINT NOT NULL DEFAULT 0;
ALTER TABLE asks ADD COLUMN cache_write BIGINT NOT NULL DEFAULT 0;
CREATE INDEX asks_by_time ON asks (asked_at);

-- Whether a person said or caused what a turn is about, and what its open question may cost.
ALTER TABLE turns ADD COLUMN for_people INTEGER NOT NULL DEFAULT 1;
ALTER TABLE turns ADD COLUMN reserved BIGINT NOT NULL DEFAULT 0;
CREATE INDEX turns_of_chain ON turns (root_id);
