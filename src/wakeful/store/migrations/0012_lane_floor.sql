-- Lanes of sessions that were deleted long ago are removed; new ones begin above their epochs.
CREATE TABLE lane_floor (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    epoch BIGINT NOT NULL           -- the highest of a lane that was removed
);
INSERT INTO lane_floor (id, epoch) VALUES (1, 0);
