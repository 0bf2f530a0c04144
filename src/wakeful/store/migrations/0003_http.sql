-- What the HTTP door needs: a row to prove that a commit works, and quick answers about owners.

CREATE TABLE readiness (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    at BIGINT NOT NULL
);

CREATE INDEX sessions_owned ON sessions (owner) WHERE owner <> 'operator';
