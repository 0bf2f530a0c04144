-- Full text over what was said. The words lie in an index without content: the text is the entry's.

CREATE VIRTUAL TABLE search_words USING fts5(
    words, content = '', contentless_delete = 1, tokenize = 'ascii'
);
CREATE TABLE search_lines (
    id INTEGER PRIMARY KEY,         -- the rowid of its words; by time
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
