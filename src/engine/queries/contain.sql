-- SPDX-License-Identifier: Apache-2.0
-- Containment of a scope and revocations.

-- CONTAINED: is the host, this tenant or this task contained; the widest first
SELECT scope, restored FROM containment WHERE released_ms = 0 AND scope IN ('host', 'tenant:' || ?1, 'task:' || ?2)
ORDER BY restored DESC, length(scope) LIMIT 1;

-- CONTAINMENT_INSERT: durable before anything else is done about it
INSERT INTO containment (scope, reason, who, since_ms, restored) VALUES (?, ?, ?, ?, ?);

-- CONTAINMENT_OPEN: the one that holds for exactly this scope
SELECT seq, scope, reason, who, since_ms, released_ms, restored, sandboxes_ended, grants_revoked, proposals_stopped
FROM containment WHERE scope = ? AND released_ms = 0;

-- CONTAINMENT_NEXT: one after the other, newest first
SELECT seq, scope, reason, who, since_ms, released_ms, restored, sandboxes_ended, grants_revoked, proposals_stopped
FROM containment WHERE seq < ? ORDER BY seq DESC LIMIT 1;

-- CONTAINMENT_COUNTS: what it stopped
UPDATE containment SET sandboxes_ended = ?, grants_revoked = ?, proposals_stopped = ? WHERE seq = ?;

-- CONTAINMENT_RELEASE: authority is given back
UPDATE containment SET released_ms = ?, released_by = ?, release = ?, signature = ? WHERE seq = ? AND released_ms = 0;

-- GRANT_SCOPE: the next grant that still gives something, after an end and a number: task zero = the whole tenant, tenant empty = the host
SELECT expires_ms, seq, id, task, tenant FROM grant_ INDEXED BY grant_live
WHERE revoked_ms = 0 AND (expires_ms, seq) > (?1, ?2) AND (?3 = '' OR tenant = ?3) AND (?4 = zeroblob(10) OR task = ?4)
ORDER BY expires_ms, seq LIMIT 1;

-- GRANT_TAKE: taken back
UPDATE grant_ SET revoked_ms = ? WHERE id = ? AND revoked_ms = 0;

-- GRANT_ONE: whose it is
SELECT task, tenant, operation, revoked_ms FROM grant_ WHERE id = ?;

-- PROPOSAL_SCOPE: what could still be sent, in a scope as above; grant zero = of any
SELECT seq, id FROM proposal
WHERE state IN ('proposed', 'pending', 'approved', 'dispatching') AND (?1 = '' OR tenant = ?1)
	AND (?2 = zeroblob(10) OR task = ?2) AND (?3 = zeroblob(10) OR grant_ = ?3) AND seq > ?4
ORDER BY seq LIMIT 64;

-- PROPOSAL_APPROVED: decided, and not yet carried out; few of many, so by their index (+seq)
SELECT seq, id FROM proposal WHERE state = 'approved' AND +seq > ? ORDER BY +seq LIMIT 1;

