-- Attachments stay as long as anything holds them: a stimulus, an entry, a delivery.
-- min_binary: 3

ALTER TABLE attachment_uses RENAME COLUMN stimulus_id TO holder;

ALTER TABLE deliveries ADD COLUMN attachments TEXT NOT NULL DEFAULT '[]';
ALTER TABLE deliveries ADD COLUMN reply_to TEXT;  -- the message that it answers, as its door names it
ALTER TABLE stimuli ADD COLUMN message_id TEXT;   -- what its door calls it
