-- min_binary: 4
-- Automations: scheduled input into sessions, one row each, and one row per run.
CREATE TABLE automations (
    id TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    category TEXT NOT NULL,             -- bound, isolated, legacy, system
    owner TEXT NOT NULL,                -- of the turn, or of the credential, that made it
    trust TEXT NOT NULL,                -- likewise: a run has no more
    by_person BIGINT NOT NULL,          -- 1: a person made it; its bound runs pass quiet hours
    cause_id TEXT,                      -- the turn that made it
    session_key TEXT NOT NULL,          -- where it runs
    schedule TEXT NOT NULL,
    payload TEXT NOT NULL,
    post_to_main TEXT,
    deliver_to TEXT,
    best_effort BIGINT NOT NULL,
    wake TEXT,
    missed TEXT NOT NULL,
    overlap TEXT NOT NULL,
    timeout_s BIGINT,
    delete_after_run BIGINT NOT NULL,
    respect_quiet_hours BIGINT NOT NULL,
    enabled BIGINT NOT NULL,
    disabled_reason TEXT,               -- paused, finished, failures
    revision BIGINT NOT NULL,           -- of the schedule: an occurrence of an earlier one is void
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    next_run_at BIGINT,                 -- in UTC, as its timer; NULL: never again
    zone_data TEXT,                     -- the version of the zone data that it was computed with
    failures_in_a_row BIGINT NOT NULL,
    last_run_id TEXT,                   -- the last that ended, as are the following
    last_run_at BIGINT,
    last_status TEXT,
    last_error TEXT,
    last_duration_ms BIGINT,
    imported_from TEXT                  -- the id it had elsewhere
);
CREATE UNIQUE INDEX automations_named ON automations (agent_id, name) WHERE enabled = 1;
CREATE INDEX automations_of_session ON automations (session_key, id);
CREATE INDEX automations_of_agent ON automations (agent_id, id);
CREATE INDEX automations_of_owner ON automations (owner, id);
CREATE INDEX automations_of_zones ON automations (zone_data)
    WHERE enabled = 1 AND zone_data IS NOT NULL;
CREATE UNIQUE INDEX automations_imported ON automations (agent_id, imported_from)
    WHERE imported_from IS NOT NULL;

-- While a run is open (ended_at is NULL) its state is that of its stimulus and its turn.
CREATE TABLE automation_runs (
    id TEXT PRIMARY KEY,                -- {job}:{ms}, {job}:{ms}:retry:{n}, {job}:manual:{id}
    job_id TEXT NOT NULL,
    job_name TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    session_key TEXT NOT NULL,
    cause TEXT NOT NULL,                -- schedule, retry, catch-up, manual
    scheduled_at BIGINT NOT NULL,
    filed_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    starts_at BIGINT NOT NULL,          -- not before: those that make up for lost time are apart
    late_ms BIGINT NOT NULL,
    state TEXT NOT NULL,                -- how it ended; while it is open: due
    reason TEXT,
    attempts BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    count BIGINT NOT NULL,              -- occurrences that this row stands for
    stimulus_id TEXT,
    turn_id TEXT,
    transcript_id TEXT,                 -- of an isolated run: deleted with its record
    answer TEXT NOT NULL,               -- what becomes of what it says
    model TEXT,
    thinking TEXT,
    timeout_s BIGINT,
    cost DOUBLE PRECISION,
    prompt_ref TEXT,
    prompt_variables TEXT,
    rendered_prompt TEXT,
    error TEXT,
    traceback TEXT
);
CREATE INDEX automation_runs_of_job ON automation_runs (job_id, filed_at, id);
CREATE INDEX automation_runs_open ON automation_runs (job_id) WHERE ended_at IS NULL;
CREATE INDEX automation_runs_catching_up ON automation_runs (agent_id, starts_at)
    WHERE ended_at IS NULL AND cause = 'catch-up';
CREATE INDEX automation_runs_of_stimulus ON automation_runs (stimulus_id)
    WHERE stimulus_id IS NOT NULL;
CREATE INDEX automation_runs_of_turn ON automation_runs (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX automation_runs_ended ON automation_runs (ended_at) WHERE ended_at IS NOT NULL;

-- How long a turn may take, where whoever caused it says so; NULL: as its agent's settings say.
ALTER TABLE turns ADD COLUMN wall_s BIGINT;
-- 1: it failed of something that time may mend.
ALTER TABLE turns ADD COLUMN may_pass BIGINT NOT NULL DEFAULT 0;
