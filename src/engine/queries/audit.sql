-- SPDX-License-Identifier: Apache-2.0
-- The tree over all audit records.

-- AUDIT_SIZE: how many there are, and the number of the last
SELECT count(*), coalesce(max(seq), 0) FROM audit;

-- AUDIT_DIGESTS: of the records after a number
SELECT digest FROM audit WHERE seq > ? ORDER BY seq;

-- AUDIT_CHAIN: whose record it is
SELECT chain FROM audit WHERE seq = ?;

-- TILE_INSERT: a tile that is full
INSERT INTO audit_tile (height, number, hashes) VALUES (?, ?, ?);

-- TILE_GET: one
SELECT hashes FROM audit_tile WHERE height = ? AND number = ?;

-- TILE_COUNT: how many of a height
SELECT count(*) FROM audit_tile WHERE height = ?;
