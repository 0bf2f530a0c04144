-- Transcripts that came from files.

CREATE TABLE imports (
    transcript_id TEXT PRIMARY KEY,
    state TEXT NOT NULL,            -- running: nobody sees it yet; done
    header TEXT,                    -- the first line of the file
    touched_at BIGINT NOT NULL      -- the last write; long ago: whoever imported is gone
);
-- What an entry cannot say of the line that it came from.
CREATE TABLE entry_lines (
    entry_id TEXT PRIMARY KEY,
    name TEXT,                      -- its id in the file, where that is not the end of ours
    line TEXT                       -- the line, where it is not what we would write
);
