/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grants: that a task may use an operation as it stands in the catalogue now (another document is another operation), on such resources,
 * so many times, until then. Issued by trusted callers over the api only; no message of a relay can make, change or lengthen one. What a grant's conditions say about the system of
 * record is tested by the broker.
 */
#pragma once

#include "engine/task.h"

struct grant {
	struct engine *engine; /* borrowed */
	uint64_t seq;
	struct id id, task;
	char tenant[TENANT_BYTES], operation[OPERATION_NAME_MAX + 1], issuer[PRINCIPAL_TEXT];
	uint32_t version, uses, used;
	uint8_t document[SHA256_BYTES]; /* of the operation, for which it was issued */
	struct buf where;               /* conditions, NUL-terminated */
	uint64_t created_ms, expires_ms, revoked_ms;
};

void grant_init(struct grant *g, struct engine *e);
void grant_done(struct grant *g);
#define auto_grant __attribute__((cleanup(grant_done)))

/* -ENOENT */
int grant_load(struct grant *g, const struct id *id, struct err *err) MUST_CHECK;

/* The oldest that this task may use for this operation now: 1, or 0 when there is none. Its last moment is the one before expires_ms. */
int grant_live(struct grant *g, const struct id *task, const struct operation *op, uint64_t now_ms,
	struct err *err) MUST_CHECK;

/* Whether there would be one if the operation had not changed: 1 or 0. For a sentence, since a list shows that grant as valid. */
int grant_outdated(struct engine *e, const struct id *task, const struct operation *op,
	uint64_t now_ms, struct err *err) MUST_CHECK;

/* Once more, inside the open transaction. */
int grant_use(struct grant *g, struct err *err) MUST_CHECK;

int on_grant_issue(struct engine *e, struct reply to, const struct msg_grant_issue *m,
	struct err *err) MUST_CHECK;
int on_grant_list(struct engine *e, struct reply to, const struct msg_grant_list *m,
	struct err *err) MUST_CHECK;
