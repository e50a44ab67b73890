-- SPDX-License-Identifier: Apache-2.0
-- The store of the engine, version 4: the tree over all audit records. Leaf N is the record with seq N + 1.

-- Full tiles (src/lib/tlog/tile.h): 256 hashes of the nodes of level 8 * height. What grows is in memory, made anew at start.
CREATE TABLE audit_tile (
	height INTEGER NOT NULL CHECK (height BETWEEN 0 AND 3),
	number INTEGER NOT NULL,
	hashes BLOB NOT NULL CHECK (length(hashes) = 8192),
	PRIMARY KEY (height, number)
) STRICT;

CREATE TRIGGER audit_tile_no_update BEFORE UPDATE ON audit_tile
BEGIN
	SELECT RAISE(ABORT, 'the tree of audit records is append-only');
END;

CREATE TRIGGER audit_tile_no_delete BEFORE DELETE ON audit_tile
BEGIN
	SELECT RAISE(ABORT, 'the tree of audit records is append-only');
END;
