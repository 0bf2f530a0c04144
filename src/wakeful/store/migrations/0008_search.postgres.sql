-- Full text over what was said. The words are made by the runtime, as they are for SQLite.

CREATE TABLE search_words (
    rowid BIGINT PRIMARY KEY,
    words tsvector NOT NULL
);
CREATE INDEX search_words_of_texts ON search_words USING gin (words);
CREATE TABLE search_lines (
    id BIGINT PRIMARY KEY,          -- the rowid of its words; by time
    entry_id TEXT NOT NULL UNIQUE,
    branch TEXT NOT NULL,
    role TEXT NOT NULL
);
CREATE INDEX search_lines_of_branch ON search_lines (branch);
CREATE TABLE search_heads (
    branch TEXT PRIMARY KEY,
    depth BIGINT NOT NULL           -- of the last entry that was added
);
CREATE INDEX sessions_of_transcript ON sessions (transcript_id);
