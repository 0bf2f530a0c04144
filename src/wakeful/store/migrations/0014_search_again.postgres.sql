-- Words are parted anew, and begin to be ranked: the indexer adds every entry again at the start.
TRUNCATE search_words, search_lines, search_heads;
