-- SPDX-License-Identifier: Apache-2.0
-- Sandboxes and jobs.

-- SANDBOX_INSERT: written before it is asked for
INSERT INTO sandbox (id, task, tenant, template_asked, template, digest, state, reason, memory_bytes,
	disk_bytes, disk_inodes, pids, cpu_milli, open_files, ttl_ms, ttl_until_ms, idle_ms, persistent,
	created_ms, metadata, policy, policy_digest)
VALUES (?, ?, ?, ?, ?, ?, 'creating', 'none', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- SANDBOX_GET: the whole row
SELECT id, task, tenant, template_asked, template, digest, state, reason, memory_bytes, disk_bytes,
	disk_inodes, pids, cpu_milli, open_files, ttl_ms, ttl_until_ms, idle_ms, persistent, created_ms,
	ended_ms, boot_us, residue, metadata, spawned, gone, seq, policy, policy_digest
FROM sandbox WHERE id = ?;

-- SANDBOX_LIVE: what has to be held, in the order of creation
SELECT id FROM sandbox WHERE state IN ('creating', 'running', 'paused', 'stopping') ORDER BY seq;

-- SANDBOX_STATE: a step
UPDATE sandbox SET state = ?, reason = ? WHERE id = ?;

-- SANDBOX_READY: the first command works
UPDATE sandbox SET state = ?, boot_us = ?, spawned = ? WHERE id = ?;

-- SANDBOX_LIFE: other limits of its life
UPDATE sandbox SET ttl_ms = ?, ttl_until_ms = ?, idle_ms = ?, persistent = ? WHERE id = ?;

-- SANDBOX_END: it is gone; residue = its proof was not zero
UPDATE sandbox SET state = ?, reason = ?, ended_ms = ?, residue = ?, gone = ? WHERE id = ?;

-- SANDBOX_RESIDUE: what was left of it was looked at again
UPDATE sandbox SET residue = ?, gone = ? WHERE id = ?;

-- JOB_INSERT: written before it starts
INSERT INTO job (id, sandbox, task, kind, reason, uid, timeout_ms, started_ms, argv_digest, text, cwd)
VALUES (?, ?, ?, ?, 'running', ?, ?, ?, ?, ?, ?);

-- JOB_END: written when it ended
UPDATE job SET reason = ?, code = ?, holders = ?, ended_ms = ?, wall_us = ?, cpu_us = ?,
	memory_peak_bytes = ?, stdout_seen = ?, stdout_kept = ?, stderr_seen = ?, stderr_kept = ?,
	stdin_bytes = ?, content = ?
WHERE id = ?;

-- JOB_GET: one
SELECT id, sandbox, kind, reason, code, uid, holders, timeout_ms, started_ms, ended_ms, wall_us, cpu_us,
	memory_peak_bytes, stdout_seen, stdout_kept, stderr_seen, stderr_kept, stdin_bytes, content,
	argv_digest, text, cwd, (SELECT sandbox.reason FROM sandbox WHERE sandbox.id = job.sandbox)
FROM job WHERE id = ?;

-- JOB_PAGE: of a sandbox, oldest first, after this one (NULL = from the start)
SELECT id, sandbox, kind, reason, code, uid, holders, timeout_ms, started_ms, ended_ms, wall_us, cpu_us,
	memory_peak_bytes, stdout_seen, stdout_kept, stderr_seen, stderr_kept, stdin_bytes, content,
	argv_digest, text, cwd, (SELECT sandbox.reason FROM sandbox WHERE sandbox.id = job.sandbox)
FROM job WHERE sandbox = ?1 AND seq > coalesce((SELECT seq FROM job WHERE id = ?2), 0)
ORDER BY seq LIMIT ?3;

-- JOB_RUNNING: of a sandbox
SELECT id, kind FROM job WHERE sandbox = ? AND reason = 'running' ORDER BY seq;
