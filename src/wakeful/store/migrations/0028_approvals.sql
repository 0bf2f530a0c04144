-- What agents asked people: may this call run, and questions. One row each, kept until it is old.
CREATE TABLE approvals (
    id TEXT PRIMARY KEY,
    number BIGINT NOT NULL UNIQUE,      -- by which people name it
    kind TEXT NOT NULL,                 -- tool, question
    agent_id TEXT NOT NULL,
    session_key TEXT NOT NULL,
    turn_id TEXT NOT NULL,              -- that asked
    state TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    on_expiry TEXT NOT NULL,            -- what becomes of it if nobody decides
    trust TEXT NOT NULL,                -- of the turn that asked: the answer's has no more
    source TEXT NOT NULL,               -- of that turn, as are the following
    route TEXT,
    root_id TEXT NOT NULL,
    depth INTEGER NOT NULL,
    granted TEXT NOT NULL,
    tool TEXT,
    arguments TEXT,
    arguments_hash TEXT,                -- SHA-256 of canonical JSON: a grant is for these alone
    question TEXT,
    after_seq BIGINT NOT NULL,          -- the lane's last number then: what came later may answer
    note TEXT,
    decided_by TEXT,
    decided_at BIGINT,
    stimulus_id TEXT,                   -- the answer, as the session gets it
    used_at BIGINT,                     -- when its call began, or was found to be impossible
    used_by TEXT                        -- the turn that it began in
);
CREATE INDEX approvals_of_call ON approvals (session_key, arguments_hash);
CREATE INDEX approvals_of_turn ON approvals (turn_id);
CREATE INDEX approvals_of_answer ON approvals (stimulus_id) WHERE stimulus_id IS NOT NULL;
CREATE INDEX approvals_open ON approvals (session_key, number) WHERE state = 'open';
CREATE INDEX approvals_open_of_agent ON approvals (agent_id) WHERE state = 'open';
CREATE INDEX approvals_by_state ON approvals (state, number);
CREATE INDEX approvals_decided ON approvals (decided_at) WHERE decided_at IS NOT NULL;

-- The last number given; its row is locked by whoever gives the next one.
CREATE TABLE approval_head (
    id TEXT PRIMARY KEY,
    last BIGINT NOT NULL
);
INSERT INTO approval_head (id, last) VALUES ('approvals', 0);
