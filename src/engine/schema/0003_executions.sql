-- SPDX-License-Identifier: Apache-2.0
-- The store of the engine, version 3: looking executions up, and words for the broker that must reach it.

-- lookups: how often the provider was asked. lookup_ms: when it is asked next by itself, 0 = never. lookup_until_ms: not later than this,
-- 0 = it cannot be asked.
ALTER TABLE execution ADD COLUMN lookups INTEGER NOT NULL DEFAULT 0;
ALTER TABLE execution ADD COLUMN lookup_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE execution ADD COLUMN lookup_until_ms INTEGER NOT NULL DEFAULT 0;

CREATE INDEX execution_lookup ON execution (lookup_ms) WHERE state = 'unknown' AND lookup_ms > 0;

-- What a revocation or a containment looks for.
CREATE INDEX proposal_may_go ON proposal (seq) WHERE state IN ('proposed', 'pending', 'approved', 'dispatching');

-- restored: the engine contained the host by itself, because its store is older than a checkpoint.
ALTER TABLE containment ADD COLUMN restored INTEGER NOT NULL DEFAULT 0 CHECK (restored IN (0, 1));

-- What was decided here and the broker has not yet confirmed: told again after each start of either. One row for each word, in order.
CREATE TABLE outbox (
	seq INTEGER PRIMARY KEY AUTOINCREMENT,
	kind TEXT NOT NULL CHECK (kind IN ('revoke', 'contain')),
	proposal BLOB NOT NULL,
	scope TEXT NOT NULL,
	UNIQUE (kind, proposal, scope)
) STRICT;
