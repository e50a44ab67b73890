-- SPDX-License-Identifier: Apache-2.0
-- Transactions, facts about the store itself, and the audit.

-- BEGIN: every change is inside one
BEGIN IMMEDIATE;

-- COMMIT: in the WAL file when it returns
COMMIT;

-- ROLLBACK: nothing happened
ROLLBACK;

-- META_GET: one fact
SELECT value FROM meta WHERE key = ?;

-- META_SET: one fact
INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- CHAIN_INSERT: an empty chain for a new task
INSERT INTO chain (id) VALUES (?);

-- CHAIN_GET: where it ends
SELECT records, head FROM chain WHERE id = ?;

-- CHAIN_SET: it grew by one
UPDATE chain SET records = ?, head = ? WHERE id = ?;

-- AUDIT_INSERT: one record
INSERT INTO audit (seq, chain, number, previous, digest, record) VALUES (?, ?, ?, ?, ?, ?);

-- AUDIT_PAGE: records of a chain after a number
SELECT number, seq, previous, digest, record FROM audit WHERE chain = ? AND number > ? ORDER BY number LIMIT ?;

-- IDEMPOTENCY_GET: what this key made
SELECT body, made FROM idempotency WHERE tenant = ? AND key = ? AND created_ms >= ?;

-- IDEMPOTENCY_INSERT: this key made that
INSERT INTO idempotency (tenant, key, body, made, created_ms) VALUES (?, ?, ?, ?, ?);

-- IDEMPOTENCY_FORGET: what it made came to nothing, so the key may be used again
DELETE FROM idempotency WHERE made = ?;

-- IDEMPOTENCY_EXPIRE: keys hold for a day
DELETE FROM idempotency WHERE created_ms < ?;
