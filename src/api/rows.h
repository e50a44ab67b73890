/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the engine as JSON, and the form of lists and pages: what several resources share. */
#pragma once

#include "lib/json/out.h"
#include "request.h"

/* Whole values. */
void row_sandbox(struct json_out *o, const struct msg_sandbox_row *m);
void row_job(struct json_out *o, const struct msg_job_row *m);
void row_task(struct json_out *o, const struct msg_task_row *m);

/* Members of the open object. */
void row_life(struct json_out *o, const struct msg_sandbox_row *m);
void row_usage(struct json_out *o, const struct usage *u);
void row_limits(struct json_out *o, const struct limits *l);
void row_time(struct json_out *o, const char *key, uint64_t real_ms);        /* nothing when 0 */
void row_digest(struct json_out *o, const char *key, const uint8_t *digest); /* "sha256:..." */
void row_id(struct json_out *o, const char *key, const char *prefix,
	const struct id *id);                                               /* nothing when zero */
void row_strings(struct json_out *o, const char *key, struct view strings); /* an array */
void row_map(struct json_out *o, const char *key, struct view pairs);

/* {"items":[ ... ],"more":bool} */
void row_page_begin(struct request *req);
void row_page_end(struct request *req, bool more); /* sends it */

/* ?label=key=value as the wire has it; ?after= */
int row_label(const struct request *req, struct buf *ret, struct err *err) MUST_CHECK;
int row_after(
	const struct request *req, const char *prefix, struct id *ret, struct err *err) MUST_CHECK;
