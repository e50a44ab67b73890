-- SPDX-License-Identifier: Apache-2.0
-- Grants, proposals and decisions.

-- GRANT_INSERT: a new one
INSERT INTO grant_ (id, task, tenant, operation, version, document, where_, uses, created_ms, expires_ms, issuer)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- GRANT_GET: one
SELECT seq, id, task, tenant, operation, version, where_, uses, used, created_ms, expires_ms, revoked_ms, issuer, document
FROM grant_ WHERE id = ?;

-- GRANT_LIVE: the oldest of a task and operation that may be used once more now
SELECT seq, id, task, tenant, operation, version, where_, uses, used, created_ms, expires_ms, revoked_ms, issuer, document
FROM grant_ WHERE task = ? AND operation = ? AND document = ? AND revoked_ms = 0 AND used < uses AND expires_ms > ?
ORDER BY seq LIMIT 1;

-- GRANT_OUTDATED: of a task and operation, could still be used if the operation were the one that they were issued for
SELECT count(*) FROM grant_ WHERE task = ? AND operation = ? AND document <> ? AND revoked_ms = 0 AND used < uses AND expires_ms > ?;

-- GRANT_COUNT: of a task that are not over
SELECT count(*) FROM grant_ WHERE task = ? AND revoked_ms = 0 AND used < uses AND expires_ms > ?;

-- GRANT_PAGE: of a task, newest first, older than a number
SELECT seq, id, task, tenant, operation, version, where_, uses, used, created_ms, expires_ms, revoked_ms, issuer, document
FROM grant_ WHERE task = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3;

-- GRANT_USE: once more
UPDATE grant_ SET used = used + 1 WHERE id = ?;

-- GRANT_GIVE_BACK: what it was used for came to nothing before anything was begun
UPDATE grant_ SET used = used - 1 WHERE id = ? AND used > 0;

-- PROPOSAL_INSERT: a new one
INSERT INTO proposal (id, task, tenant, sandbox, operation, version, effect, state, request, grant_, actor, requester, arguments,
	defaulted, provenance, note, amount, currency, quorum, created_ms)
VALUES (?, ?, ?, ?, ?, ?, ?, 'proposed', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- PROPOSAL_GET: all of it
SELECT seq, id, task, tenant, sandbox, operation, version, effect, state, denial, text, request, void, grant_, actor, requester,
	arguments, defaulted, provenance, note, amount, currency, quorum, record, digest, created_ms, decide_by_ms, dispatch_by_ms,
	ended_ms
FROM proposal WHERE id = ?;

-- PROPOSAL_SAME: the one that asks for the same and came, or may come, to something
SELECT id FROM proposal WHERE request = ? AND void = 0;

-- PROPOSAL_STEP: a step, if the state is still the one that the caller saw
UPDATE proposal SET state = ?1, denial = ?2, text = ?3, void = ?4, quorum = ?5, record = ?6, digest = ?7, decide_by_ms = ?8,
	dispatch_by_ms = ?9, ended_ms = ?10
WHERE id = ?11 AND state = ?12
RETURNING seq;

-- PROPOSAL_OPEN: of a task, how many wait for the world or for a person
SELECT count(*) FROM proposal WHERE task = ? AND state IN ('proposed', 'pending');

-- PROPOSAL_OPEN_ALL: does any have a time that can be over
SELECT EXISTS (SELECT 1 FROM proposal WHERE state = 'pending') OR EXISTS (SELECT 1 FROM proposal WHERE state = 'approved')
	OR EXISTS (SELECT 1 FROM proposal WHERE state = 'proposed');

-- PROPOSAL_DUE: those whose time is over at ?1, and those that are being checked
SELECT id FROM proposal WHERE state = 'pending' AND decide_by_ms <= ?1
UNION ALL SELECT id FROM proposal WHERE state = 'approved' AND dispatch_by_ms <= ?1
UNION ALL SELECT id FROM proposal WHERE state = 'proposed'
LIMIT 64;

-- PROPOSAL_IN: the next in a state in which something can still come of it, after a number
SELECT id FROM proposal INDEXED BY proposal_may_go
WHERE state IN ('proposed', 'pending', 'approved', 'dispatching') AND state = ? AND seq > ? ORDER BY seq LIMIT 1;

-- PROPOSAL_PAGE: of a tenant, newest first, older than a number; template empty = all
SELECT p.id FROM proposal AS p INDEXED BY proposal_by_tenant JOIN task AS t ON t.id = p.task
WHERE p.tenant = ?1 AND (?2 = '' OR t.template = ?2) AND p.seq < ?3 ORDER BY p.seq DESC LIMIT ?4;

-- PROPOSAL_PAGE_ALL: the same over all tenants
SELECT id FROM proposal WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2;

-- PROPOSAL_PAGE_TASK: the same of one task
SELECT id FROM proposal WHERE task = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3;

-- PROPOSAL_PENDING: of a tenant, those that wait for a person
SELECT p.id FROM proposal AS p INDEXED BY proposal_pending JOIN task AS t ON t.id = p.task
WHERE p.state = 'pending' AND p.tenant = ?1 AND (?2 = '' OR t.template = ?2) AND p.seq < ?3 ORDER BY p.seq DESC LIMIT ?4;

-- PROPOSAL_PENDING_ALL: the same over all tenants
SELECT id FROM proposal INDEXED BY proposal_may_go
WHERE state IN ('proposed', 'pending', 'approved', 'dispatching') AND state = 'pending' AND seq < ?1 ORDER BY seq DESC LIMIT ?2;

-- PROPOSAL_PENDING_TASK: the same of one task
SELECT id FROM proposal INDEXED BY proposal_open
WHERE state IN ('proposed', 'pending') AND state = 'pending' AND task = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3;

-- PROPOSAL_EXECUTION: what was begun for it
SELECT id FROM execution WHERE proposal = ?;

-- DECISION_INSERT: as the broker confirmed it
INSERT INTO decision (proposal, approver, key, approve, decision, signature, seen_ms) VALUES (?, ?, ?, ?, ?, ?, ?);

-- DECISION_LIST: of a proposal, in their order
SELECT approver, key, approve, decision, signature, seen_ms FROM decision WHERE proposal = ? ORDER BY seq;

-- DECISION_APPROVALS: by how many people it is approved
SELECT count(*) FROM decision WHERE proposal = ? AND approve = 1;

-- DECISION_LAST: whose was the last
SELECT approver FROM decision WHERE proposal = ? ORDER BY seq DESC LIMIT 1;
