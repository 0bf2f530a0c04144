-- Words are parted anew, and begin to be ranked: the indexer adds every entry again at the start.
DROP TABLE search_words;
CREATE VIRTUAL TABLE search_words USING fts5(
    words, content = '', contentless_delete = 1, tokenize = 'ascii'
);
DELETE FROM search_lines;
DELETE FROM search_heads;
