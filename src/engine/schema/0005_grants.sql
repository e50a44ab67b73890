-- SPDX-License-Identifier: Apache-2.0
-- The store of the engine, version 5: what a revocation or a containment looks for, without the grants that are over.

CREATE INDEX grant_live ON grant_ (expires_ms, seq) WHERE revoked_ms = 0;

-- For pages of them; grant_by_task has the operation first.
CREATE INDEX grant_page ON grant_ (task, seq);
