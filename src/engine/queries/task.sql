-- SPDX-License-Identifier: Apache-2.0
-- Tasks, their labels and inputs.

-- TASK_INSERT: a new task
INSERT INTO task (id, tenant, template, state, implicit, created_ms, owner, memory_bytes, disk_bytes, disk_inodes,
	pids, cpu_milli, open_files, ttl_ms, idle_ms, labels, policy)
VALUES (?, ?, ?, 'open', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- LABEL_INSERT: a label of the task that was just made
INSERT INTO label (task, key, value) VALUES (?, ?, ?);

-- TASK_GET: all that a step needs
SELECT seq, id, tenant, template, state, implicit, created_ms, closed_ms, owner, memory_bytes, disk_bytes,
	disk_inodes, pids, cpu_milli, open_files, ttl_ms, idle_ms, labels, policy
FROM task WHERE id = ?;

-- TASK_BY_TICKET: the newest task with this ticket, of a tenant or (empty) of all; the same for the template
SELECT t.id FROM label AS l JOIN task AS t ON t.seq = l.task
WHERE l.key = 'ticket' AND l.value = ?1 AND (?2 = '' OR t.tenant = ?2) AND (?3 = '' OR t.template = ?3)
ORDER BY l.task DESC LIMIT 1;

-- TASK_PAGE: newest first, older than a number; template empty = all
SELECT id FROM task WHERE tenant = ?1 AND (?2 = '' OR template = ?2) AND seq < ?3 ORDER BY seq DESC LIMIT ?4;

-- TASK_PAGE_ALL: the same over all tenants
SELECT id FROM task WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2;

-- TASK_PAGE_LABEL: the same with a label; tenant or template empty = all
SELECT t.id FROM label AS l JOIN task AS t ON t.seq = l.task
WHERE l.key = ?1 AND l.value = ?2 AND (?3 = '' OR t.tenant = ?3) AND (?4 = '' OR t.template = ?4) AND l.task < ?5
ORDER BY l.task DESC LIMIT ?6;

-- TASK_STATE: a step
UPDATE task SET state = ?, closed_ms = ? WHERE id = ?;

-- TASK_COUNT_EXPLICIT: open tasks that a tenant made for themselves
SELECT count(*) FROM task WHERE tenant = ? AND state = 'open' AND implicit = 0;

-- TASK_NUMBERS: what belongs to it
SELECT (SELECT count(*) FROM sandbox WHERE task = ?1), (SELECT count(*) FROM sandbox AS s JOIN job AS j ON j.sandbox = s.id
	WHERE s.task = ?1),
	(SELECT count(*) FROM input WHERE task = ?1), (SELECT records FROM chain WHERE id = ?1);

-- TASK_RESIDUE: does anything of its sandboxes still stand
SELECT count(*) FROM sandbox WHERE task = ? AND residue = 1;

-- INPUT_PUT: a stored input; the same path again replaces it
INSERT INTO input (task, path, mode, size_bytes, content, created_ms) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (task, path) DO UPDATE SET mode = excluded.mode, size_bytes = excluded.size_bytes,
	content = excluded.content, created_ms = excluded.created_ms;

-- INPUT_LIST: in the order in which they came
SELECT seq, path, mode, size_bytes, content FROM input WHERE task = ? ORDER BY seq;

-- INPUT_NEXT: the one after a number
SELECT seq, path, mode, size_bytes, content FROM input WHERE task = ? AND seq > ? ORDER BY seq LIMIT 1;

-- INPUT_SUM: bytes and number without this path
SELECT coalesce(sum(size_bytes), 0), count(*) FROM input WHERE task = ? AND path <> ?;

-- INPUT_DELETE: it is taken back
DELETE FROM input WHERE task = ? AND path = ?;

-- INPUT_CONTENT: what is stored under this path
SELECT content FROM input WHERE task = ? AND path = ?;

-- INPUT_NEEDED: how many inputs of tasks that are not closed have this content
SELECT count(*) FROM input AS i JOIN task AS t ON t.id = i.task WHERE i.content = ? AND t.closed_ms = 0;
