-- SPDX-License-Identifier: Apache-2.0
-- Counters of tasks and tenants. The table's own check refuses what would pass a limit.

-- BUDGET_PUT: the row, with the limit of today; a limit that was lowered below what is used is what is used
INSERT INTO budget (scope, day, operation, counter, unit, limit_) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET limit_ = max(excluded.limit_, reserved + used);

-- BUDGET_ADD: reserved, used
UPDATE budget SET reserved = reserved + ?1, used = used + ?2
WHERE scope = ?3 AND day = ?4 AND operation = ?5 AND counter = ?6 AND unit = ?7;

-- BUDGET_SETTLE: so much less is reserved, so much more is used, at most all that was left
UPDATE budget SET reserved = max(reserved - ?1, 0), used = min(used + ?2, limit_ - max(reserved - ?1, 0))
WHERE scope = ?3 AND day = ?4 AND operation = ?5 AND counter = ?6 AND unit = ?7;

-- BUDGET_RESTART: nobody waits for these calls any more
UPDATE budget SET used = used + reserved, reserved = 0 WHERE counter IN ('broker_calls', 'broker_bytes') AND reserved > 0;

-- BUDGET_GET: one counter
SELECT reserved, used FROM budget WHERE scope = ? AND day = ? AND operation = ? AND counter = ? AND unit = ?;

-- BUDGET_PAGE: those of operations, of a scope and a day
SELECT operation, counter, unit, reserved, used, limit_ FROM budget WHERE scope = ? AND day = ? AND operation <> ''
ORDER BY operation, counter, unit;
