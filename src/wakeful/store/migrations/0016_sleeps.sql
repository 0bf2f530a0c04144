-- Who sleeps: by whose word, and until when. Nothing could sleep before this step.

DROP TABLE sleeps;

CREATE TABLE sleeps (
    owner TEXT PRIMARY KEY,         -- a session key, or an agent id for its hub sessions
    id TEXT NOT NULL,               -- of this very sleep; its timer carries the same
    agent_id TEXT NOT NULL,
    session_key TEXT,
    policy TEXT NOT NULL,
    reason TEXT NOT NULL,
    trust TEXT NOT NULL,            -- of whoever fell asleep: the wake has the same
    cause_id TEXT,                  -- the turn that fell asleep
    requested_ms BIGINT NOT NULL,
    final_ms BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    wake_at BIGINT NOT NULL,
    buffered INTEGER NOT NULL,
    dropped INTEGER NOT NULL,
    wake_id TEXT,                   -- the stimulus that ends it when it opens a turn
    woken_by TEXT                   -- whoever filed that
);

CREATE INDEX sleeps_of_agent ON sleeps (agent_id, wake_at);

-- The sleep that a turn wants once it has ended well.
ALTER TABLE turns ADD COLUMN sleep TEXT;

-- Sessions that have had their first tick.
CREATE TABLE greetings (
    session_key TEXT PRIMARY KEY,
    greeted_at BIGINT NOT NULL
);

-- What an agent did by itself lately: its daily number of turns is counted here.
CREATE INDEX turns_of_its_own ON turns (agent_id, opened_at) WHERE kind IN ('tick', 'wake');
