-- Who may do what. A secret is never stored, only its SHA-256.

CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    hash TEXT NOT NULL UNIQUE,
    scopes TEXT NOT NULL,
    owner TEXT NOT NULL,            -- whose sessions it sees; 'operator' sees everything
    trust TEXT NOT NULL,            -- of what is sent with it
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT
);
CREATE TABLE login_codes (
    hash TEXT PRIMARY KEY,
    token_id TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE TABLE logins (
    hash TEXT PRIMARY KEY,          -- of the cookie
    token_id TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE TABLE audit (
    id TEXT PRIMARY KEY,
    at BIGINT NOT NULL,
    who TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT NOT NULL
);

ALTER TABLE sessions ADD COLUMN owner TEXT NOT NULL DEFAULT 'operator';
