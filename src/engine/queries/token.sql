-- SPDX-License-Identifier: Apache-2.0
-- Tokens. The store knows their digests only.

-- TOKEN_INSERT: a new one
INSERT INTO token (prefix, digest, tenant, label, template, created_ms, expires_ms) VALUES (?, ?, ?, ?, ?, ?, ?);

-- TOKEN_BY_DIGEST: who is this
SELECT prefix, tenant, template, expires_ms, revoked_ms, used_ms FROM token WHERE digest = ?;

-- TOKEN_BY_PREFIX: one by its name
SELECT tenant, revoked_ms FROM token WHERE prefix = ?;

-- TOKEN_LIST: of a tenant, or (empty) of all
SELECT prefix, label, tenant, template, created_ms, expires_ms, revoked_ms, used_ms
FROM token WHERE (?1 = '' OR tenant = ?1) ORDER BY tenant, created_ms LIMIT ?2;

-- TOKEN_COUNT: living tokens of a tenant
SELECT count(*) FROM token WHERE tenant = ?1 AND revoked_ms = 0;

-- TOKEN_REVOKE: from now on
UPDATE token SET revoked_ms = ? WHERE prefix = ?;

-- TOKEN_USED: at most once a minute
UPDATE token SET used_ms = ? WHERE prefix = ?;
