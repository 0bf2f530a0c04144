-- Times are milliseconds since 1970 UTC; flags are 0 or 1; JSON is text and never queried.

CREATE TABLE bus_head (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    epoch TEXT NOT NULL,            -- a new, restored or copied store starts a new one
    seq BIGINT NOT NULL,
    pruned_through BIGINT NOT NULL
);
CREATE TABLE events (
    seq BIGINT PRIMARY KEY,
    kind TEXT NOT NULL,
    session_key TEXT,
    turn_id TEXT,
    stimulus_id TEXT,
    at BIGINT NOT NULL,
    data TEXT NOT NULL
);

CREATE TABLE lanes (
    session_key TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL,
    pool TEXT NOT NULL,
    owner TEXT,                     -- the node that runs it
    epoch BIGINT NOT NULL,          -- raised by every claim, carried by every write of an attempt
    seq BIGINT NOT NULL,            -- of the last stimulus accepted
    turn_id TEXT,                   -- its open turn
    resume_at BIGINT,               -- when an open turn without a task goes on; null: not by itself
    debounce_from BIGINT,
    debounce_until BIGINT,
    overflow TEXT,                  -- what the cap dropped, for the next turn
    ready_at BIGINT                 -- when a node should look; null: nothing is due
);
CREATE INDEX lanes_ready ON lanes (pool, ready_at) WHERE owner IS NULL AND ready_at IS NOT NULL;
CREATE INDEX lanes_owned ON lanes (owner) WHERE owner IS NOT NULL;
CREATE INDEX lanes_open ON lanes (agent_id) WHERE turn_id IS NOT NULL;

CREATE TABLE stimuli (
    id TEXT PRIMARY KEY,
    session_key TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    origin TEXT NOT NULL,
    priority INTEGER NOT NULL,
    place INTEGER NOT NULL,
    seq BIGINT NOT NULL,
    text TEXT NOT NULL,
    attachments TEXT NOT NULL,
    trust TEXT NOT NULL,
    source TEXT NOT NULL,
    scope TEXT NOT NULL,
    cause_id TEXT,
    root_id TEXT NOT NULL,
    depth INTEGER NOT NULL,
    route TEXT,
    mode TEXT,
    not_before BIGINT NOT NULL,     -- as its sender wished
    due_at BIGINT NOT NULL,         -- when the lane looks at it: never early, later if parked
    expires_at BIGINT,
    is_debounced INTEGER NOT NULL,
    state TEXT NOT NULL,
    state_reason TEXT,
    turn_id TEXT,
    preemptions INTEGER NOT NULL,
    accepted_at BIGINT NOT NULL,
    settled_at BIGINT
);
-- The last three columns are there so that counting and timing a lane read the index alone.
CREATE INDEX stimuli_waiting
    ON stimuli (session_key, priority, place, seq, origin, is_debounced, due_at)
    WHERE state IN ('pending', 'parked');
CREATE INDEX stimuli_parked ON stimuli (agent_id, state_reason) WHERE state = 'parked';
CREATE INDEX stimuli_looping ON stimuli (root_id) WHERE state_reason = 'loop';
CREATE INDEX stimuli_of_turn ON stimuli (turn_id) WHERE turn_id IS NOT NULL;

CREATE TABLE dedup (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    stimulus_id TEXT NOT NULL,
    body_hash TEXT NOT NULL,
    receipt TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (scope, key)
);
CREATE INDEX dedup_expiry ON dedup (expires_at);

CREATE TABLE storms (
    source TEXT NOT NULL,
    session_key TEXT NOT NULL,
    recent TEXT NOT NULL,           -- when the last turn-opening stimuli came
    since BIGINT,                   -- start of the running episode; null: none
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (source, session_key)
);
CREATE INDEX storms_seen ON storms (seen_at);
-- Locked by whoever halts or lifts, shared by whoever asks whether something is halted.
CREATE TABLE halt_head (
    id TEXT PRIMARY KEY
);
INSERT INTO halt_head (id) VALUES ('halts');
CREATE TABLE halts (
    scope TEXT PRIMARY KEY,         -- an agent id, or '*' for the runtime
    halted_at BIGINT NOT NULL,
    halted_by TEXT NOT NULL
);

CREATE TABLE turns (
    id TEXT PRIMARY KEY,
    session_key TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    transcript_id TEXT NOT NULL,
    origin TEXT NOT NULL,
    priority INTEGER NOT NULL,
    trust TEXT NOT NULL,
    source TEXT NOT NULL,
    route TEXT,
    root_id TEXT NOT NULL,
    depth INTEGER NOT NULL,
    opened_by TEXT NOT NULL,        -- the first of its stimuli
    config_hash TEXT NOT NULL,
    state TEXT NOT NULL,
    phase TEXT NOT NULL,
    interrupt INTEGER NOT NULL,
    is_preemptible INTEGER NOT NULL,
    attempts INTEGER NOT NULL,      -- claims since the last committed step
    retries INTEGER NOT NULL,       -- failed asks since the last reply
    step INTEGER NOT NULL,
    tool_calls INTEGER NOT NULL,
    used_ms BIGINT NOT NULL,        -- wall time spent by earlier claims
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cost DOUBLE PRECISION NOT NULL,
    reply TEXT,
    error_kind TEXT,
    error TEXT,
    opened_at BIGINT NOT NULL,
    claimed_at BIGINT NOT NULL,
    ended_at BIGINT
);
CREATE INDEX turns_of_session ON turns (session_key, id);

CREATE TABLE asks (
    turn_id TEXT NOT NULL,
    step INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    epoch BIGINT NOT NULL,
    state TEXT NOT NULL,
    leaf_hash TEXT NOT NULL,        -- the context that was sent, by its last entry
    asked_at BIGINT NOT NULL,
    settled_at BIGINT,
    usage TEXT,
    error TEXT,
    PRIMARY KEY (turn_id, step, attempt)
);

CREATE TABLE tool_calls (
    turn_id TEXT NOT NULL,
    step INTEGER NOT NULL,
    call_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    effect TEXT NOT NULL,
    arguments TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    state TEXT NOT NULL,
    intended_at BIGINT NOT NULL,
    settled_at BIGINT,
    output TEXT,                    -- what the model was not shown, when the result was cut
    ends_turn INTEGER NOT NULL,     -- its result said that the turn should rest
    PRIMARY KEY (turn_id, step, call_id)
);

CREATE TABLE sessions (
    key TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL,
    transcript_id TEXT NOT NULL,
    branch TEXT NOT NULL,
    leaf_id TEXT,
    leaf_depth BIGINT NOT NULL,     -- of the last entry; -1: empty
    leaf_hash TEXT NOT NULL,
    context_from BIGINT NOT NULL,   -- depth of the first entry the model still sees
    created_at BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    last_human_at BIGINT,
    last_write_at BIGINT,
    binding TEXT,                   -- the binding that opened it
    route TEXT,                     -- of the last human message
    queue TEXT NOT NULL,
    stopped_note INTEGER NOT NULL,  -- the next prompt says that the last turn was stopped
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cost DOUBLE PRECISION NOT NULL
);
CREATE INDEX sessions_recent ON sessions (last_write_at);

CREATE TABLE entries (
    id TEXT PRIMARY KEY,
    transcript_id TEXT NOT NULL,
    branch TEXT NOT NULL,
    depth BIGINT NOT NULL,
    parent_id TEXT,
    turn_id TEXT,
    stimulus_id TEXT UNIQUE,
    epoch BIGINT NOT NULL,
    kind TEXT NOT NULL,
    at BIGINT NOT NULL,
    body TEXT NOT NULL,
    hash TEXT NOT NULL,
    UNIQUE (branch, depth)
);

CREATE TABLE deliveries (
    id TEXT PRIMARY KEY,
    target TEXT NOT NULL,
    route TEXT NOT NULL,
    session_key TEXT NOT NULL,
    turn_id TEXT,
    text TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    due_at BIGINT NOT NULL,
    filed_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    settled_at BIGINT,
    error TEXT
);
CREATE INDEX deliveries_due ON deliveries (due_at, id) WHERE state IN ('queued', 'sent');
CREATE INDEX deliveries_of_target ON deliveries (target, id) WHERE state IN ('queued', 'sent');
CREATE INDEX deliveries_of_turn ON deliveries (turn_id) WHERE turn_id IS NOT NULL;

CREATE TABLE timers (
    id TEXT PRIMARY KEY,
    due_at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    target TEXT NOT NULL,
    payload TEXT NOT NULL
);
CREATE INDEX timers_due ON timers (due_at, id);

CREATE TABLE sleeps (
    owner TEXT PRIMARY KEY,         -- a session key, or an agent id for its hub sessions
    agent_id TEXT NOT NULL,
    session_key TEXT,
    generation TEXT NOT NULL,       -- its timer carries the same
    policy TEXT NOT NULL,
    reason TEXT NOT NULL,
    requested_ms BIGINT NOT NULL,
    final_ms BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    wake_at BIGINT NOT NULL,
    buffered INTEGER NOT NULL,
    dropped INTEGER NOT NULL
);
