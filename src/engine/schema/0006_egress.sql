-- SPDX-License-Identifier: Apache-2.0
-- The store of the engine, version 6: egress (docs/decisions/0004-egress.md). Written by revision.c, verdict.c, loan.c and lease.c.

-- Reasons grew, and SQLite cannot change a CHECK: the table is made anew, its rows are the old ones. policy: name of the revision whose
-- digest is policy_digest; empty and zero = it has none. References to it are tested when the step is committed.
PRAGMA defer_foreign_keys = ON;
CREATE TABLE sandbox_before AS SELECT * FROM sandbox;
DROP TABLE sandbox;

CREATE TABLE sandbox (
	seq INTEGER PRIMARY KEY,
	id BLOB NOT NULL UNIQUE CHECK (length(id) = 10),
	task BLOB NOT NULL REFERENCES task (id),
	tenant TEXT NOT NULL,
	template_asked TEXT NOT NULL,
	template TEXT NOT NULL,
	digest BLOB NOT NULL CHECK (length(digest) = 32),
	state TEXT NOT NULL CHECK (state IN ('creating', 'running', 'paused', 'stopping', 'deleted', 'failed')),
	reason TEXT NOT NULL CHECK (reason IN ('none', 'killed', 'ttl', 'idle', 'task_closed', 'agent_lost',
		'relay_lost', 'oom', 'spawn_failed', 'measured_different', 'host_stopped', 'engine_restart',
		'protocol', 'gateway_lost')),
	memory_bytes INTEGER NOT NULL,
	disk_bytes INTEGER NOT NULL,
	disk_inodes INTEGER NOT NULL,
	pids INTEGER NOT NULL,
	cpu_milli INTEGER NOT NULL,
	open_files INTEGER NOT NULL,
	ttl_ms INTEGER NOT NULL,
	ttl_until_ms INTEGER NOT NULL,
	idle_ms INTEGER NOT NULL,
	persistent INTEGER NOT NULL CHECK (persistent IN (0, 1)),
	created_ms INTEGER NOT NULL,
	ended_ms INTEGER NOT NULL DEFAULT 0,
	boot_us INTEGER NOT NULL DEFAULT 0,
	residue INTEGER NOT NULL DEFAULT 0 CHECK (residue IN (0, 1)),
	metadata BLOB NOT NULL,
	spawned BLOB,
	gone BLOB,
	policy TEXT NOT NULL DEFAULT '',
	policy_digest BLOB NOT NULL DEFAULT (zeroblob(32)) CHECK (length(policy_digest) = 32)
) STRICT;

INSERT INTO sandbox (seq, id, task, tenant, template_asked, template, digest, state, reason, memory_bytes, disk_bytes, disk_inodes, pids,
	cpu_milli, open_files, ttl_ms, ttl_until_ms, idle_ms, persistent, created_ms, ended_ms, boot_us, residue, metadata, spawned, gone)
SELECT seq, id, task, tenant, template_asked, template, digest, state, reason, memory_bytes, disk_bytes, disk_inodes, pids,
	cpu_milli, open_files, ttl_ms, ttl_until_ms, idle_ms, persistent, created_ms, ended_ms, boot_us, residue, metadata, spawned, gone
FROM sandbox_before ORDER BY seq;
DROP TABLE sandbox_before;

CREATE INDEX sandbox_by_task ON sandbox (task, seq);
CREATE INDEX sandbox_live ON sandbox (seq) WHERE state IN ('creating', 'running', 'paused', 'stopping');
CREATE INDEX sandbox_residue ON sandbox (task) WHERE residue = 1;
CREATE INDEX sandbox_by_policy ON sandbox (task, seq) WHERE policy <> '';

-- policy: what its sandboxes get; empty = none. egress_revoked_ms: what it was given was taken back; its sandboxes reach nothing any more.
ALTER TABLE task ADD COLUMN policy TEXT NOT NULL DEFAULT '';
ALTER TABLE task ADD COLUMN egress_revoked_ms INTEGER NOT NULL DEFAULT 0;

-- Every revision that a sandbox was ever created with: records name it by its digest.
CREATE TABLE policy (
	digest BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
	name TEXT NOT NULL,
	document BLOB NOT NULL,
	first_ms INTEGER NOT NULL
) STRICT;

CREATE TRIGGER policy_no_update BEFORE UPDATE ON policy
BEGIN
	SELECT RAISE(ABORT, 'a revision of a policy is what it is');
END;

-- What the ended sandboxes of a task used, and how many rows of net and egress it has.
CREATE TABLE egress_task (
	task BLOB PRIMARY KEY REFERENCES task (id),
	names INTEGER NOT NULL DEFAULT 0 CHECK (names >= 0),
	connections INTEGER NOT NULL DEFAULT 0 CHECK (connections >= 0),
	handshakes INTEGER NOT NULL DEFAULT 0 CHECK (handshakes >= 0),
	requests INTEGER NOT NULL DEFAULT 0 CHECK (requests >= 0),
	brokered INTEGER NOT NULL DEFAULT 0 CHECK (brokered >= 0),
	bytes_out INTEGER NOT NULL DEFAULT 0 CHECK (bytes_out >= 0),
	bytes_in INTEGER NOT NULL DEFAULT 0 CHECK (bytes_in >= 0),
	kinds INTEGER NOT NULL DEFAULT 0,
	asked INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- What a living sandbox has of its task's budgets: lent since it began (NAME), of that used as its gateway told (NAME_used). leases: brokered
-- requests that it was given. Lent is never below used, whatever the code above believes.
CREATE TABLE egress_loan (
	sandbox BLOB PRIMARY KEY REFERENCES sandbox (id),
	task BLOB NOT NULL REFERENCES egress_task (task),
	leases INTEGER NOT NULL DEFAULT 0,
	names INTEGER NOT NULL DEFAULT 0,
	names_used INTEGER NOT NULL DEFAULT 0 CHECK (names_used BETWEEN 0 AND names),
	connections INTEGER NOT NULL DEFAULT 0,
	connections_used INTEGER NOT NULL DEFAULT 0 CHECK (connections_used BETWEEN 0 AND connections),
	handshakes INTEGER NOT NULL DEFAULT 0,
	handshakes_used INTEGER NOT NULL DEFAULT 0 CHECK (handshakes_used BETWEEN 0 AND handshakes),
	requests INTEGER NOT NULL DEFAULT 0,
	requests_used INTEGER NOT NULL DEFAULT 0 CHECK (requests_used BETWEEN 0 AND requests),
	brokered INTEGER NOT NULL DEFAULT 0,
	brokered_used INTEGER NOT NULL DEFAULT 0 CHECK (brokered_used BETWEEN 0 AND brokered),
	bytes_out INTEGER NOT NULL DEFAULT 0,
	bytes_out_used INTEGER NOT NULL DEFAULT 0 CHECK (bytes_out_used BETWEEN 0 AND bytes_out),
	bytes_in INTEGER NOT NULL DEFAULT 0,
	bytes_in_used INTEGER NOT NULL DEFAULT 0 CHECK (bytes_in_used BETWEEN 0 AND bytes_in),
	CHECK (leases BETWEEN 0 AND brokered)
) STRICT, WITHOUT ROWID;

CREATE INDEX egress_loan_by_task ON egress_loan (task);

-- Requests of a task by a rule that has `uses`. rule: digest of what makes two rules the same (lease.c), over all revisions.
CREATE TABLE egress_use (
	task BLOB NOT NULL REFERENCES task (id),
	rule BLOB NOT NULL CHECK (length(rule) = 32),
	used INTEGER NOT NULL CHECK (used > 0),
	PRIMARY KEY (task, rule)
) STRICT, WITHOUT ROWID;

-- For people: verdicts of one kind about one name. kind: digest of what stands before address. verdict, reason, scheme as in proto/enums.def.
CREATE TABLE net (
	seq INTEGER PRIMARY KEY,
	task BLOB NOT NULL REFERENCES task (id),
	kind BLOB NOT NULL CHECK (length(kind) = 32),
	policy BLOB NOT NULL REFERENCES policy (digest),
	verdict TEXT NOT NULL,
	reason TEXT NOT NULL,
	scheme TEXT NOT NULL,
	rule INTEGER NOT NULL,
	name TEXT NOT NULL,
	port INTEGER NOT NULL,
	address TEXT NOT NULL,
	times INTEGER NOT NULL CHECK (times >= 0),
	bytes_out INTEGER NOT NULL CHECK (bytes_out >= 0),
	bytes_in INTEGER NOT NULL CHECK (bytes_in >= 0),
	first_ms INTEGER NOT NULL,
	last_ms INTEGER NOT NULL,
	UNIQUE (task, kind)
) STRICT;

-- For replay: the distinct requests, names of parameters without values.
CREATE TABLE egress (
	seq INTEGER PRIMARY KEY,
	task BLOB NOT NULL REFERENCES task (id),
	tenant TEXT NOT NULL,
	kind BLOB NOT NULL CHECK (length(kind) = 32),
	policy BLOB NOT NULL REFERENCES policy (digest),
	verdict TEXT NOT NULL,
	reason TEXT NOT NULL,
	scheme TEXT NOT NULL,
	name TEXT NOT NULL,
	port INTEGER NOT NULL,
	method TEXT NOT NULL,
	path TEXT NOT NULL,
	query BLOB NOT NULL,
	counted INTEGER NOT NULL CHECK (counted >= 0),
	last_ms INTEGER NOT NULL,
	UNIQUE (task, kind)
) STRICT;

CREATE INDEX egress_by_tenant ON egress (tenant, seq);
