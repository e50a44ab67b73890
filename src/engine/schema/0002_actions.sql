-- SPDX-License-Identifier: Apache-2.0
-- The store of the engine, version 2: actions (docs/decisions/0003-actions.md). Written by grant.c, proposal*.c, decision*.c,
-- budgets.c, execution*.c and contain.c. Nothing here is an authority: what may leave is proven by signatures that the broker tests.

-- who made it, as records name people: uid:1000 or token:PREFIX; empty = made before there were actions.
ALTER TABLE task ADD COLUMN owner TEXT NOT NULL DEFAULT '';

-- A grant of a task for one operation as it was when it was issued (document: its digest). where_: conditions, NUL-terminated.
CREATE TABLE grant_ (
	seq INTEGER PRIMARY KEY,
	id BLOB NOT NULL UNIQUE CHECK (length(id) = 10),
	task BLOB NOT NULL REFERENCES task (id),
	tenant TEXT NOT NULL,
	operation TEXT NOT NULL,
	version INTEGER NOT NULL,
	document BLOB NOT NULL CHECK (length(document) = 32),
	where_ BLOB NOT NULL,
	uses INTEGER NOT NULL CHECK (uses > 0),
	used INTEGER NOT NULL DEFAULT 0 CHECK (used BETWEEN 0 AND uses),
	created_ms INTEGER NOT NULL,
	expires_ms INTEGER NOT NULL,
	revoked_ms INTEGER NOT NULL DEFAULT 0,
	issuer TEXT NOT NULL
) STRICT;

CREATE INDEX grant_by_task ON grant_ (task, operation, seq);
CREATE INDEX grant_by_tenant ON grant_ (tenant, seq);

-- request: digest of task, operation, schema, adapter and arguments; void = it came to nothing, so the same may be asked again.
-- arguments, defaulted, provenance are the record's, kept from the beginning; record and digest from pending on.
CREATE TABLE proposal (
	seq INTEGER PRIMARY KEY,
	id BLOB NOT NULL UNIQUE CHECK (length(id) = 10),
	task BLOB NOT NULL REFERENCES task (id),
	tenant TEXT NOT NULL,
	sandbox BLOB NOT NULL CHECK (length(sandbox) = 10),
	operation TEXT NOT NULL,
	version INTEGER NOT NULL,
	effect TEXT NOT NULL CHECK (effect IN ('read', 'draft', 'external', 'irreversible')),
	state TEXT NOT NULL CHECK (state IN ('proposed', 'pending', 'approved', 'dispatching', 'succeeded', 'failed', 'unknown',
		'manual', 'denied', 'rejected', 'expired', 'revoked', 'superseded')),
	denial TEXT NOT NULL DEFAULT 'none' CHECK (denial IN ('none', 'record_malformed', 'operation_unknown', 'arguments',
		'task_state', 'no_grant', 'grant_condition', 'posture', 'contained', 'pending_cap', 'budget', 'verify_unavailable',
		'verify_failed', 'state', 'digest', 'schema_changed', 'adapter_changed', 'policy_changed', 'epoch',
		'request_different', 'revoked', 'spent', 'key_conflict', 'clock', 'decide_expired', 'dispatch_expired',
		'signature', 'approvers_unreadable', 'approver_unknown', 'approver_may_not', 'approver_amount', 'approver_own',
		'quorum', 'secret_missing', 'dial_refused', 'provider_answer', 'broker_unavailable', 'audit_unavailable',
		'restored', 'release_blocked')),
	text TEXT NOT NULL DEFAULT '',
	request BLOB NOT NULL CHECK (length(request) = 32),
	void INTEGER NOT NULL DEFAULT 0 CHECK (void IN (0, 1)),
	grant_ BLOB NOT NULL REFERENCES grant_ (id),
	actor TEXT NOT NULL,
	requester TEXT NOT NULL,
	arguments BLOB NOT NULL,
	defaulted BLOB NOT NULL,
	provenance BLOB NOT NULL,
	note BLOB NOT NULL,
	amount INTEGER NOT NULL DEFAULT 0,
	currency TEXT NOT NULL DEFAULT '',
	quorum INTEGER NOT NULL DEFAULT 0 CHECK (quorum BETWEEN 0 AND 5),
	record BLOB NOT NULL DEFAULT (x''),
	digest BLOB NOT NULL DEFAULT (zeroblob(32)) CHECK (length(digest) = 32),
	created_ms INTEGER NOT NULL,
	decide_by_ms INTEGER NOT NULL DEFAULT 0,
	dispatch_by_ms INTEGER NOT NULL DEFAULT 0,
	ended_ms INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX proposal_by_task ON proposal (task, seq);
CREATE INDEX proposal_by_tenant ON proposal (tenant, seq);
CREATE INDEX proposal_open ON proposal (task) WHERE state IN ('proposed', 'pending');
CREATE INDEX proposal_pending ON proposal (tenant, seq) WHERE state = 'pending';
CREATE INDEX proposal_decide ON proposal (decide_by_ms) WHERE state = 'pending';
CREATE INDEX proposal_dispatch ON proposal (dispatch_by_ms) WHERE state = 'approved';
CREATE INDEX proposal_checked ON proposal (seq) WHERE state = 'proposed';
CREATE UNIQUE INDEX proposal_once ON proposal (request) WHERE void = 0;

-- What a person signed, as the broker confirmed it. decision and signature are sent to the broker again when it is dispatched.
CREATE TABLE decision (
	seq INTEGER PRIMARY KEY,
	proposal BLOB NOT NULL REFERENCES proposal (id),
	approver TEXT NOT NULL,
	key TEXT NOT NULL,
	approve INTEGER NOT NULL CHECK (approve IN (0, 1)),
	decision BLOB NOT NULL,
	signature BLOB NOT NULL,
	seen_ms INTEGER NOT NULL,
	UNIQUE (proposal, approver)
) STRICT;

CREATE TRIGGER decision_no_update BEFORE UPDATE ON decision
BEGIN
	SELECT RAISE(ABORT, 'decisions are append-only');
END;

-- One attempt to carry a proposal out. day: of the reservation in budget. settlement: what a person signed of one that is unknown.
CREATE TABLE execution (
	seq INTEGER PRIMARY KEY,
	id BLOB NOT NULL UNIQUE CHECK (length(id) = 10),
	proposal BLOB NOT NULL UNIQUE REFERENCES proposal (id),
	task BLOB NOT NULL REFERENCES task (id),
	tenant TEXT NOT NULL,
	operation TEXT NOT NULL,
	key TEXT NOT NULL UNIQUE,
	provider_account TEXT NOT NULL,
	state TEXT NOT NULL CHECK (state IN ('dispatching', 'succeeded', 'failed', 'unknown', 'manual')),
	settled TEXT NOT NULL DEFAULT 'unseen' CHECK (settled IN ('unseen', 'denied', 'not_sent', 'succeeded', 'failed', 'unknown')),
	denial TEXT NOT NULL DEFAULT 'none' CHECK (denial IN ('none', 'record_malformed', 'operation_unknown', 'arguments',
		'task_state', 'no_grant', 'grant_condition', 'posture', 'contained', 'pending_cap', 'budget', 'verify_unavailable',
		'verify_failed', 'state', 'digest', 'schema_changed', 'adapter_changed', 'policy_changed', 'epoch',
		'request_different', 'revoked', 'spent', 'key_conflict', 'clock', 'decide_expired', 'dispatch_expired',
		'signature', 'approvers_unreadable', 'approver_unknown', 'approver_may_not', 'approver_amount', 'approver_own',
		'quorum', 'secret_missing', 'dial_refused', 'provider_answer', 'broker_unavailable', 'audit_unavailable',
		'restored', 'release_blocked')),
	incident INTEGER NOT NULL DEFAULT 0 CHECK (incident IN (0, 1)),
	status INTEGER NOT NULL DEFAULT 0,
	sends INTEGER NOT NULL DEFAULT 0,
	amount INTEGER NOT NULL DEFAULT 0,
	currency TEXT NOT NULL DEFAULT '',
	day INTEGER NOT NULL,
	started_ms INTEGER NOT NULL,
	spent_ms INTEGER NOT NULL DEFAULT 0,
	ended_ms INTEGER NOT NULL DEFAULT 0,
	first_byte_us INTEGER NOT NULL DEFAULT 0,
	response BLOB NOT NULL DEFAULT (zeroblob(32)) CHECK (length(response) = 32),
	text TEXT NOT NULL DEFAULT '',
	receipt BLOB NOT NULL DEFAULT (x''),
	settlement BLOB NOT NULL DEFAULT (x''),
	signature BLOB NOT NULL DEFAULT (x''),
	settled_by TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE INDEX execution_by_task ON execution (task, seq);
CREATE INDEX execution_by_tenant ON execution (tenant, seq);
CREATE INDEX execution_open ON execution (seq) WHERE state IN ('dispatching', 'unknown');

-- scope: task:tk_... (day 0) or tenant:NAME with the day (UTC, since 1970). operation: empty for the counters of the configuration.
-- Two that race for the last of a budget cannot both have it, whatever the code above believes: the row itself refuses.
CREATE TABLE budget (
	scope TEXT NOT NULL,
	day INTEGER NOT NULL,
	operation TEXT NOT NULL,
	counter TEXT NOT NULL CHECK (counter IN ('proposals', 'attempts', 'broker_calls', 'broker_bytes', 'money')),
	unit TEXT NOT NULL,
	reserved INTEGER NOT NULL DEFAULT 0 CHECK (reserved >= 0),
	used INTEGER NOT NULL DEFAULT 0 CHECK (used >= 0),
	limit_ INTEGER NOT NULL,
	PRIMARY KEY (scope, day, operation, counter, unit),
	CHECK (reserved + used <= limit_)
) STRICT, WITHOUT ROWID;

-- scope: host, tenant:NAME or task:tk_...
CREATE TABLE containment (
	seq INTEGER PRIMARY KEY,
	scope TEXT NOT NULL,
	reason TEXT NOT NULL,
	who TEXT NOT NULL,
	since_ms INTEGER NOT NULL,
	released_ms INTEGER NOT NULL DEFAULT 0,
	released_by TEXT NOT NULL DEFAULT '',
	sandboxes_ended INTEGER NOT NULL DEFAULT 0,
	grants_revoked INTEGER NOT NULL DEFAULT 0,
	proposals_stopped INTEGER NOT NULL DEFAULT 0,
	release BLOB NOT NULL DEFAULT (x''),
	signature BLOB NOT NULL DEFAULT (x'')
) STRICT;

CREATE UNIQUE INDEX containment_open ON containment (scope) WHERE released_ms = 0;
