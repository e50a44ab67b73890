-- SPDX-License-Identifier: Apache-2.0
-- Attempts to carry proposals out, their look-ups, and what the broker must still be told.

-- EXECUTION_INSERT: the intent, in the transaction of the step of its proposal
INSERT INTO execution (id, proposal, task, tenant, operation, key, provider_account, state, amount, currency, day,
	started_ms, lookup_until_ms)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- EXECUTION_GET: the whole row
SELECT seq, id, proposal, task, tenant, operation, key, provider_account, state, settled, denial, incident, status, sends,
	amount, currency, day, started_ms, spent_ms, ended_ms, first_byte_us, response, text, receipt, lookups, lookup_ms,
	lookup_until_ms
FROM execution WHERE id = ?;

-- EXECUTION_RESULT: a step from this state, and all that came with it; no row = somebody was faster
UPDATE execution SET state = ?1, settled = ?2, denial = ?3, incident = ?4, status = ?5, sends = ?6, spent_ms = ?7,
	ended_ms = ?8, first_byte_us = ?9, response = ?10, text = ?11, receipt = ?12, lookups = ?13, lookup_ms = ?14
WHERE id = ?15 AND state = ?16 RETURNING seq;

-- EXECUTION_SETTLED: what a person signed
UPDATE execution SET settlement = ?, signature = ?, settled_by = ? WHERE id = ?;

-- EXECUTION_LOOKUP: when it is looked up next
UPDATE execution SET lookups = ?, lookup_ms = ? WHERE id = ? AND state = 'unknown';

-- EXECUTION_INCIDENT: what was answered contradicts what was recorded or asked for
UPDATE execution SET incident = 1 WHERE id = ?;

-- EXECUTION_DISPATCHING: of which nobody here knows how they ended
SELECT seq, id, proposal FROM execution WHERE state IN ('dispatching', 'unknown') AND state = 'dispatching' AND +seq > ?
ORDER BY seq LIMIT 1;

-- EXECUTION_DUE: to be looked up by now, longest due first
SELECT id FROM execution WHERE state = 'unknown' AND lookup_ms > 0 AND lookup_ms <= ?1 ORDER BY lookup_ms LIMIT ?2;

-- EXECUTION_NEXT: the next look-up
SELECT coalesce(min(lookup_ms), 0) FROM execution WHERE state = 'unknown' AND lookup_ms > 0;

-- EXECUTION_PAGE: newest first, older than a number, of a tenant; template empty = all
SELECT x.id FROM execution AS x INDEXED BY execution_by_tenant JOIN task AS t ON t.id = x.task
WHERE x.tenant = ?1 AND (?2 = '' OR t.template = ?2) AND x.seq < ?3 ORDER BY x.seq DESC LIMIT ?4;

-- EXECUTION_PAGE_ALL: the same over all tenants
SELECT id FROM execution WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2;

-- EXECUTION_PAGE_TASK: the same of a task
SELECT id FROM execution WHERE task = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3;

-- EXECUTION_PAGE_OPEN: dispatching and unknown; tenant or template empty, or task zero = all
SELECT x.id FROM execution AS x INDEXED BY execution_open JOIN task AS t ON t.id = x.task
WHERE x.state IN ('dispatching', 'unknown') AND (?1 = '' OR x.tenant = ?1) AND (?2 = '' OR t.template = ?2)
	AND (?3 = zeroblob(10) OR x.task = ?3) AND x.seq < ?4
ORDER BY x.seq DESC LIMIT ?5;

-- EXECUTION_OPEN_SCOPE: dispatching or unknown in a scope, after a number: task zero = the whole tenant, tenant empty = the host
SELECT seq, id FROM execution WHERE state IN ('dispatching', 'unknown') AND (?1 = '' OR tenant = ?1)
	AND (?2 = zeroblob(10) OR task = ?2) AND seq > ?3
ORDER BY seq LIMIT ?4;

-- EXECUTION_OPEN_COUNT: how many those are
SELECT count(*) FROM execution WHERE state IN ('dispatching', 'unknown') AND (?1 = '' OR tenant = ?1)
	AND (?2 = zeroblob(10) OR task = ?2);

-- DECISION_SIGNED: what the broker is shown again when it is carried out
SELECT decision, signature FROM decision WHERE proposal = ? AND approve = 1 ORDER BY seq;

-- GRANT_HOLDS: of this task, and until when
SELECT revoked_ms, expires_ms FROM grant_ WHERE id = ? AND task = ?;

-- OUTBOX_PUT: to be told to the broker until it confirms
INSERT INTO outbox (kind, proposal, scope) VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

-- OUTBOX_NEXT: the next one after a number
SELECT seq, kind, proposal, scope FROM outbox WHERE seq > ? ORDER BY seq LIMIT 1;

-- OUTBOX_DONE: the broker has it
DELETE FROM outbox WHERE seq = ?;
