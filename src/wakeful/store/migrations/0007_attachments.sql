-- What came along with stimuli, kept once whoever sends it how often.

CREATE TABLE attachments (
    hash TEXT PRIMARY KEY,          -- SHA-256 of the bytes
    size BIGINT NOT NULL,           -- how many bytes there are
    data TEXT NOT NULL,             -- base64
    used_at BIGINT NOT NULL         -- when a stimulus last brought it
);
CREATE TABLE attachment_uses (
    stimulus_id TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (stimulus_id, hash)
);
CREATE INDEX attachment_uses_of_hash ON attachment_uses (hash);

-- Before, the bytes lay in the stimulus itself; no release ever wrote one.
UPDATE stimuli SET attachments = '[]' WHERE attachments <> '[]';
