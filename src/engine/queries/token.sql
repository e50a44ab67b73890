-- SPDX-License-Identifier: Apache-2.0
-- Tokens. The store knows their digests only.

-- TOKEN_INSERT: a new one
INSERT INTO token (prefix, digest, tenant, label, template, maker, created_ms, expires_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- TOKEN_BY_DIGEST: who is this
SELECT prefix, tenant, template, expires_ms, revoked_ms, used_ms FROM token WHERE digest = ?;

-- TOKEN_BY_PREFIX: one by its name
SELECT tenant, template FROM token WHERE prefix = ?;

-- TOKEN_FIRST: the one that an administrator made, of the line that ends in this one
WITH RECURSIVE line (prefix, maker) AS (SELECT prefix, maker FROM token WHERE prefix = ?1
	UNION SELECT t.prefix, t.maker FROM token AS t JOIN line AS l ON t.prefix = l.maker)
SELECT prefix FROM line WHERE maker = '';

-- TOKEN_LIST: of a tenant, or (empty) of all; the same for the template
SELECT prefix, label, tenant, template, created_ms, expires_ms, revoked_ms, used_ms
FROM token WHERE (?1 = '' OR tenant = ?1) AND (?2 = '' OR template = ?2) ORDER BY tenant, created_ms LIMIT ?3;

-- TOKEN_COUNT: living tokens of a tenant at this time
SELECT count(*) FROM token WHERE tenant = ?1 AND revoked_ms = 0 AND (expires_ms = 0 OR expires_ms > ?2);

-- TOKEN_FAMILY: one and all that it made, and what those made, that are not revoked
WITH RECURSIVE family (prefix) AS (SELECT ?1 UNION SELECT t.prefix FROM token AS t JOIN family AS f ON t.maker = f.prefix)
SELECT t.prefix, t.tenant, t.template, t.label, t.maker, t.expires_ms FROM token AS t JOIN family AS f ON t.prefix = f.prefix
WHERE t.revoked_ms = 0;

-- TOKEN_REVOKE: the same from now on
WITH RECURSIVE family (prefix) AS (SELECT ?2 UNION SELECT t.prefix FROM token AS t JOIN family AS f ON t.maker = f.prefix)
UPDATE token SET revoked_ms = ?1 WHERE revoked_ms = 0 AND prefix IN (SELECT prefix FROM family);

-- TOKEN_USED: at most once a minute
UPDATE token SET used_ms = ? WHERE prefix = ?;
