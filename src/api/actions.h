/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the resources of actions share: rows of the engine as JSON, and signed bytes of a body. Records, decisions and signatures pass
 * through here as bytes and are never looked into: whoever signs reads the bytes, and the broker verifies them.
 */
#pragma once

#include "lib/json/fields.h"
#include "rows.h"

/* Whole values. */
void row_operation(struct json_out *o, const struct msg_operation_row *m);
void row_grant(struct json_out *o, const struct msg_grant_row *m);
void row_proposal(struct json_out *o, const struct msg_proposal_row *m);
void row_execution(struct json_out *o, const struct msg_execution_row *m);
void row_budget(struct json_out *o, const struct msg_budget_row *m);

/* Members of the open object. */
void row_containment(struct json_out *o, const struct msg_containment_row *m);
void row_hex(struct json_out *o, const char *key, const uint8_t *digest); /* 64 digits */

enum { SIGNED_BYTES_MAX = 4096, TASK_NAME_BYTES_MAX = 256 };

/* The bytes of a field in base 64 (RFC 4648, padded, nothing else), 1 to SIGNED_BYTES_MAX of them. */
int signed_bytes(
	const struct field_str *f, const char *name, struct buf *ret, struct err *err) MUST_CHECK;

/* The task in the path: an identifier or a ticket. */
int action_task(const struct request *req, struct view *ret, struct err *err) MUST_CHECK;

/* ?after= and ?limit= of a list. */
int action_page(const struct request *req, const char *prefix, struct id *ret_after,
	uint16_t *ret_limit, struct err *err) MUST_CHECK;
