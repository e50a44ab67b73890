/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and printing answers of the daemon: all of it may be missing, of another type, or of a stranger. */
#pragma once

#include "cli/args.h"
#include "cli/client.h"
#include "lib/base/id.h"

#include <stdio.h>

/* A member as text, "" when it is none; as a number, or `absent`. Paths may be "limits.memory_mb". */
struct view answer_text(const json_t *json, const char *path);
int64_t answer_int(const json_t *json, const char *path, int64_t absent);
bool answer_bool(const json_t *json, const char *path);
const json_t *answer_at(const json_t *json, const char *path);

/* A member that must be there as text (an id); -EBADMSG. */
int answer_need(const json_t *json, const char *path, struct view *ret, struct err *err) MUST_CHECK;

/* The id of what was asked for, in exactly the form that ids of this kind have (ID_TASK, ID_SANDBOX); -EBADMSG. */
int answer_id(const json_t *json, const char *prefix, char ret[static ID_TEXT],
	struct err *err) MUST_CHECK;

/* "2026-11-29 16:13:04" of RFC 3339 text or of milliseconds since 1970, as far as it is one. */
void answer_time(const json_t *json, const char *path, char ret[static 32]);

/* The values of an object as "a=b c=d". */
void answer_pairs(const json_t *object, struct buf *ret);

/* JSON for programs: indented, ASCII only, a newline at the end. */
int answer_print(const json_t *json, struct err *err) MUST_CHECK;

/*
 * All pages of a list as one array. A page is {items, more}; the next one begins after the `key` of the last item.
 */
int answer_pages(struct client *c, struct view target, bool has_query, const char *key,
	json_t **ret, struct err *err) MUST_CHECK;

/* Flushes standard output: 0, 141 when the reader went away, or negative. */
int answer_done(struct err *err) MUST_CHECK;
