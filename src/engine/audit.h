/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing audit records: inside the transaction of the step that they tell of, so that there is
 * never one without the other. The form of a record stands in src/lib/audit/README.md.
 */
#pragma once

#include "engine/caller.h"
#include "lib/canon/write.h"

struct audit_event {
	const char *event; /* "job.start" */
	const char *tenant;
	const struct id *task;          /* its chain; NULL = the chain of the host */
	const struct id *sandbox, *job; /* NULL when it is not about one */
	const struct principal *who;
	struct view request_id;
	/* Writes the members of "data", keys ascending; NULL = none. */
	void (*data)(struct canon_writer *w, const void *arg);
	const void *arg;
};

/* -EILSEQ or -ERANGE: a value that a record cannot hold. */
int audit_append(struct engine *e, const struct audit_event *ev, struct err *err) MUST_CHECK;

/* A failure of audit_append that is the caller's doing becomes a refusal that names `what`; else r itself. */
int audit_refuse(int r, const char *what, struct err *err) MUST_CHECK;

/* Helpers for the writers of "data": a key and its value. */
void put_str(struct canon_writer *w, const char *key, const char *text);
void put_view(struct canon_writer *w, const char *key, struct view v); /* C0 controls are escaped */
void put_u64(struct canon_writer *w, const char *key, uint64_t v);     /* above 2^53 - 1: as that */
void put_i64(struct canon_writer *w, const char *key, int64_t v);
void put_bool(struct canon_writer *w, const char *key, bool v);
void put_digest(struct canon_writer *w, const char *key, const uint8_t d[static 32]);
/*
 * A path as every place shows it: redacted. When that changes it, its SHA-256 follows as key_digest.
 */
void put_path(struct canon_writer *w, const char *key, struct view path);
void put_limits(struct canon_writer *w, const char *key, const struct limits *l);
void put_facts(struct canon_writer *w, const char *key, const struct facts *f);
void put_proof(
	struct canon_writer *w, const char *key, const struct proof *p); /* NULL = not known */
void put_usage(struct canon_writer *w, const char *key, const struct usage *u);
void put_strings(struct canon_writer *w, const char *key,
	struct view strings); /* k NUL v NUL ... as [k, v, ...] */
