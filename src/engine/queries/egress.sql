-- SPDX-License-Identifier: Apache-2.0
-- Egress: revisions of policies, budgets, and what was reached.

-- POLICY_PUT: a revision that is used for the first time
INSERT INTO policy (digest, name, document, first_ms) VALUES (?, ?, ?, ?) ON CONFLICT (digest) DO NOTHING;

-- POLICY_GET: one revision
SELECT document FROM policy WHERE digest = ?;

-- POLICY_OF_TASK: that of its newest sandbox with one
SELECT policy_digest FROM sandbox WHERE task = ? AND policy <> '' ORDER BY seq DESC LIMIT 1;

-- EGRESS_TASK_PUT: its first sandbox with a policy
INSERT INTO egress_task (task) VALUES (?) ON CONFLICT (task) DO NOTHING;

-- EGRESS_MAY: is the task as it must be for anything to leave
SELECT state, egress_revoked_ms FROM task WHERE id = ?;

-- EGRESS_REVOKE: nothing of it leaves any more
UPDATE task SET egress_revoked_ms = ? WHERE id = ? AND egress_revoked_ms = 0;

-- EGRESS_ROWS: how many rows it has
SELECT kinds, asked FROM egress_task WHERE task = ?;

-- EGRESS_ROWS_SET: the same, changed
UPDATE egress_task SET kinds = ?, asked = ? WHERE task = ?;

-- LOAN_PUT: a sandbox with a policy
INSERT INTO egress_loan (sandbox, task) VALUES (?, ?);

-- LOAN_GET: what it has, and what of that it used
SELECT leases, names, connections, handshakes, requests, brokered, bytes_out, bytes_in, names_used, connections_used, handshakes_used, requests_used, brokered_used, bytes_out_used, bytes_in_used FROM egress_loan WHERE sandbox = ?;

-- LOAN_SET: more of both
UPDATE egress_loan SET names = ?, connections = ?, handshakes = ?, requests = ?, brokered = ?, bytes_out = ?, bytes_in = ?, names_used = ?, connections_used = ?, handshakes_used = ?, requests_used = ?, brokered_used = ?, bytes_out_used = ?, bytes_in_used = ? WHERE sandbox = ?;

-- LOAN_LEASE: one brokered request more
UPDATE egress_loan SET leases = leases + 1 WHERE sandbox = ?;

-- LOAN_TAKEN: of the task's budgets, what was used and what is lent
SELECT t.names + coalesce(sum(l.names), 0),
	t.connections + coalesce(sum(l.connections), 0),
	t.handshakes + coalesce(sum(l.handshakes), 0),
	t.requests + coalesce(sum(l.requests), 0),
	t.brokered + coalesce(sum(l.brokered), 0),
	t.bytes_out + coalesce(sum(l.bytes_out), 0),
	t.bytes_in + coalesce(sum(l.bytes_in), 0)
FROM egress_task AS t LEFT JOIN egress_loan AS l ON l.task = t.task WHERE t.task = ? GROUP BY t.task;

-- LOAN_USED: of the task's budgets, what was used as far as it is known
SELECT t.names + coalesce(sum(l.names_used), 0),
	t.connections + coalesce(sum(l.connections_used), 0),
	t.handshakes + coalesce(sum(l.handshakes_used), 0),
	t.requests + coalesce(sum(l.requests_used), 0),
	t.brokered + coalesce(sum(max(l.brokered_used, l.leases)), 0),
	t.bytes_out + coalesce(sum(l.bytes_out_used), 0),
	t.bytes_in + coalesce(sum(l.bytes_in_used), 0)
FROM egress_task AS t LEFT JOIN egress_loan AS l ON l.task = t.task WHERE t.task = ? GROUP BY t.task;

-- LOAN_SETTLE: a sandbox ended that used so much
UPDATE egress_task SET names = names + ?, connections = connections + ?, handshakes = handshakes + ?, requests = requests + ?, brokered = brokered + ?, bytes_out = bytes_out + ?, bytes_in = bytes_in + ? WHERE task = ?;

-- LOAN_END: and gives the rest back
DELETE FROM egress_loan WHERE sandbox = ?;

-- USE_GET: requests by a rule with uses
SELECT used FROM egress_use WHERE task = ? AND rule = ?;

-- USE_ADD: one more
INSERT INTO egress_use (task, rule, used) VALUES (?, ?, 1) ON CONFLICT (task, rule) DO UPDATE SET used = used + 1;

-- NET_ADD: one of this kind again
UPDATE net SET times = min(times + ?, 4611686018427387904), bytes_out = min(bytes_out + ?, 4611686018427387904), bytes_in = min(bytes_in + ?, 4611686018427387904), last_ms = ?,
	address = CASE WHEN ?5 = '' THEN address ELSE ?5 END
WHERE task = ? AND kind = ? RETURNING seq;

-- NET_PUT: the first
INSERT INTO net (task, kind, policy, verdict, reason, scheme, rule, name, port, address, times, bytes_out, bytes_in, first_ms, last_ms)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- NET_PAGE: of a task, newest first
SELECT policy, verdict, reason, scheme, rule, name, port, address, times, bytes_out, bytes_in, first_ms, last_ms
FROM net WHERE task = ? ORDER BY last_ms DESC, seq DESC LIMIT ?;

-- EGRESS_ADD: the same request again
UPDATE egress SET counted = min(counted + ?, 4611686018427387904), last_ms = ? WHERE task = ? AND kind = ? RETURNING seq;

-- EGRESS_PUT: the first
INSERT INTO egress (task, tenant, kind, policy, verdict, reason, scheme, name, port, method, path, query, counted, last_ms)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- EGRESS_PAGE: of a tenant and (not empty) template, since then, after a row
SELECT x.seq, x.task, x.tenant, p.name, x.verdict, x.reason, x.scheme, x.name, x.port, x.method, x.path, x.query, x.counted, x.last_ms
FROM egress AS x CROSS JOIN task AS t ON t.id = x.task CROSS JOIN policy AS p ON p.digest = x.policy
WHERE x.tenant = ?1 AND (?2 = '' OR t.template = ?2) AND x.last_ms >= ?3 AND x.seq > ?4 ORDER BY x.seq LIMIT ?5;

-- EGRESS_PAGE_ALL: the same over all tenants
SELECT x.seq, x.task, x.tenant, p.name, x.verdict, x.reason, x.scheme, x.name, x.port, x.method, x.path, x.query, x.counted, x.last_ms
FROM egress AS x CROSS JOIN policy AS p ON p.digest = x.policy
WHERE x.last_ms >= ?1 AND x.seq > ?2 ORDER BY x.seq LIMIT ?3;
