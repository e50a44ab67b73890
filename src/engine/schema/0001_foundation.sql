-- SPDX-License-Identifier: Apache-2.0
-- The store of the engine, version 1. Times are milliseconds since 1970 unless the name
-- says otherwise; 0 = never. Identifiers are the 10 bytes of lib/base/id.h. States and
-- reasons are the texts of proto/enums.def (a test compares the lists).

CREATE TABLE meta (
	key TEXT PRIMARY KEY,
	value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- The head of each audit chain: one per task, and one of the host (id all zero).
CREATE TABLE chain (
	id BLOB PRIMARY KEY CHECK (length(id) = 10),
	records INTEGER NOT NULL DEFAULT 0,
	head BLOB NOT NULL DEFAULT (zeroblob(32)) CHECK (length(head) = 32)
) STRICT, WITHOUT ROWID;

INSERT INTO chain (id) VALUES (zeroblob(10));

CREATE TABLE audit (
	seq INTEGER PRIMARY KEY,
	chain BLOB NOT NULL REFERENCES chain (id),
	number INTEGER NOT NULL,
	previous BLOB NOT NULL CHECK (length(previous) = 32),
	digest BLOB NOT NULL CHECK (length(digest) = 32),
	record BLOB NOT NULL,
	UNIQUE (chain, number)
) STRICT;

CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit
BEGIN
	SELECT RAISE(ABORT, 'audit records are append-only');
END;

CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
BEGIN
	SELECT RAISE(ABORT, 'audit records are append-only');
END;

CREATE TABLE task (
	seq INTEGER PRIMARY KEY,
	id BLOB NOT NULL UNIQUE REFERENCES chain (id),
	tenant TEXT NOT NULL,
	template TEXT NOT NULL,
	state TEXT NOT NULL CHECK (state IN ('open', 'closed', 'marked')),
	implicit INTEGER NOT NULL CHECK (implicit IN (0, 1)),
	created_ms INTEGER NOT NULL,
	closed_ms INTEGER NOT NULL DEFAULT 0,
	memory_bytes INTEGER NOT NULL,
	disk_bytes INTEGER NOT NULL,
	disk_inodes INTEGER NOT NULL,
	pids INTEGER NOT NULL,
	cpu_milli INTEGER NOT NULL,
	open_files INTEGER NOT NULL,
	ttl_ms INTEGER NOT NULL,
	idle_ms INTEGER NOT NULL,
	labels BLOB NOT NULL
) STRICT;

CREATE INDEX task_by_tenant ON task (tenant, seq);
CREATE INDEX task_explicit ON task (tenant) WHERE state = 'open' AND implicit = 0;

-- Columns in the order of the key: else quick_check of SQLite 3.40.1 finds "NULL value in label.task" where there is none.
CREATE TABLE label (
	key TEXT NOT NULL,
	value TEXT NOT NULL,
	task INTEGER NOT NULL REFERENCES task (seq),
	PRIMARY KEY (key, value, task)
) STRICT, WITHOUT ROWID;

-- spawned and gone are the bodies of the messages of those names (proto/messages.def), for
-- display; a step that changes their layout empties them here. The audit keeps the facts.
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
		'protocol')),
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
	gone BLOB
) STRICT;

CREATE INDEX sandbox_by_task ON sandbox (task, seq);
CREATE INDEX sandbox_live ON sandbox (seq) WHERE state IN ('creating', 'running', 'paused', 'stopping');
CREATE INDEX sandbox_residue ON sandbox (task) WHERE residue = 1;

CREATE TABLE job (
	seq INTEGER PRIMARY KEY,
	id BLOB NOT NULL UNIQUE CHECK (length(id) = 10),
	sandbox BLOB NOT NULL REFERENCES sandbox (id),
	task BLOB NOT NULL REFERENCES task (id),
	kind TEXT NOT NULL CHECK (kind IN ('exec', 'file_read', 'file_write', 'file_list', 'file_stat',
		'file_delete', 'file_mkdir', 'tree_down', 'tree_up')),
	reason TEXT NOT NULL CHECK (reason IN ('running', 'exited', 'signalled', 'not_started', 'timeout',
		'cancelled', 'oom', 'pids', 'disk', 'agent_lost', 'sandbox_ended')),
	code INTEGER NOT NULL DEFAULT 0,
	uid INTEGER NOT NULL,
	holders INTEGER NOT NULL DEFAULT 0,
	timeout_ms INTEGER NOT NULL,
	started_ms INTEGER NOT NULL,
	ended_ms INTEGER NOT NULL DEFAULT 0,
	wall_us INTEGER NOT NULL DEFAULT 0,
	cpu_us INTEGER NOT NULL DEFAULT 0,
	memory_peak_bytes INTEGER NOT NULL DEFAULT 0,
	stdout_seen INTEGER NOT NULL DEFAULT 0,
	stdout_kept INTEGER NOT NULL DEFAULT 0,
	stderr_seen INTEGER NOT NULL DEFAULT 0,
	stderr_kept INTEGER NOT NULL DEFAULT 0,
	stdin_bytes INTEGER NOT NULL DEFAULT 0,
	content BLOB NOT NULL DEFAULT (zeroblob(32)),
	argv_digest BLOB NOT NULL,
	text TEXT NOT NULL,
	cwd TEXT NOT NULL
) STRICT;

CREATE INDEX job_by_sandbox ON job (sandbox, seq);

-- maker: the prefix of the token that made it and takes it along when it is revoked; empty = an administrator.
CREATE TABLE token (
	prefix TEXT PRIMARY KEY,
	digest BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
	tenant TEXT NOT NULL,
	label TEXT NOT NULL,
	template TEXT NOT NULL,
	maker TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	expires_ms INTEGER NOT NULL,
	revoked_ms INTEGER NOT NULL DEFAULT 0,
	used_ms INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE INDEX token_by_maker ON token (maker);
CREATE INDEX token_by_tenant ON token (tenant, created_ms);

CREATE TABLE idempotency (
	tenant TEXT NOT NULL,
	key BLOB NOT NULL CHECK (length(key) = 32),
	body BLOB NOT NULL CHECK (length(body) = 32),
	made BLOB NOT NULL CHECK (length(made) = 10),
	created_ms INTEGER NOT NULL,
	PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_by_age ON idempotency (created_ms);
CREATE INDEX idempotency_by_made ON idempotency (made);

CREATE TABLE input (
	seq INTEGER PRIMARY KEY,
	task BLOB NOT NULL REFERENCES task (id),
	path TEXT NOT NULL,
	mode INTEGER NOT NULL,
	size_bytes INTEGER NOT NULL,
	content BLOB NOT NULL CHECK (length(content) = 32),
	created_ms INTEGER NOT NULL,
	UNIQUE (task, path)
) STRICT;

CREATE INDEX input_by_content ON input (content);
