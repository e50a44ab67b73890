/* SPDX-License-Identifier: Apache-2.0 */
/* The audit chain; see audit.h. */
#include "lib/audit/audit.h"

#include "lib/canon/read.h"

#include <errno.h>
#include <inttypes.h>

static const char domain[] = "demilune-audit-v1"; /* with its NUL */

void
audit_digest(const uint8_t previous[static SHA256_BYTES], struct view record,
	uint8_t ret[static SHA256_BYTES])
{
	struct sha256 h;

	sha256_init(&h);
	sha256_add(&h, domain, sizeof(domain));
	sha256_add(&h, previous, SHA256_BYTES);
	sha256_add(&h, record.p, record.n);
	sha256_end(&h, ret);
}

/* What the record says of itself. */
struct claims {
	int64_t version, task_seq;
	struct view task;
};

static int
read_claims(struct view record, struct claims *ret, struct err *err)
{
	struct canon_reader r;
	struct canon_token t;
	int code;

	canon_reader_init(&r, record, true);
	code = canon_want(&r, CANON_OBJECT_BEGIN, &t, err);
	while (code == 0) {
		struct view key;

		code = canon_next(&r, &t, err);
		if (code < 0 || t.type == CANON_OBJECT_END)
			break;
		key = t.raw;
		if (view_is(key, "v") || view_is(key, "task_seq")) {
			code = canon_want(&r, CANON_INT, &t, err);
			if (code == 0 && view_is(key, "v"))
				ret->version = t.i;
			else if (code == 0)
				ret->task_seq = t.i;
		} else if (view_is(key, "task")) {
			code = canon_want(&r, CANON_STR, &t, err);
			if (code == 0)
				ret->task = t.raw;
		} else {
			code = canon_skip(&r, err);
		}
	}
	if (code == 0)
		code = canon_want(&r, CANON_END, &t, err);
	return code;
}

int
audit_chain_add(struct audit_chain *c, const struct audit_row *row, struct err *err)
{
	uint8_t digest[SHA256_BYTES];
	struct claims claims = {0};
	struct err why = {0};

	if (row->number != c->number + 1)
		return err_set(err, -EBADMSG, "record %" PRIu64 " stands where %" PRIu64 " is due",
			row->number, c->number + 1);
	if (memcmp(row->previous, c->head, SHA256_BYTES) != 0)
		return err_set(err, -EBADMSG,
			"record %" PRIu64 " does not follow the one before it", row->number);
	audit_digest(row->previous, row->record, digest);
	if (memcmp(row->digest, digest, SHA256_BYTES) != 0)
		return err_set(err, -EBADMSG, "record %" PRIu64 " was changed", row->number);
	if (read_claims(row->record, &claims, &why) < 0)
		return err_set(err, -EBADMSG, "record %" PRIu64 " is not canonical: %s",
			row->number, why.text);
	if (claims.version != 1 || claims.task.n == 0 || claims.task.n >= sizeof(c->task))
		return err_set(
			err, -EBADMSG, "record %" PRIu64 " is not of version 1", row->number);
	if (claims.task_seq < 0 || (uint64_t)claims.task_seq != row->number)
		return err_set(err, -EBADMSG,
			"record %" PRIu64 " has the number %" PRId64 " inside", row->number,
			claims.task_seq);
	if (c->number != 0 && !view_is(claims.task, c->task))
		return err_set(err, -EBADMSG, "record %" PRIu64 " is of another task", row->number);
	memcpy(c->task, claims.task.p, claims.task.n);
	c->task[claims.task.n] = '\0';
	memcpy(c->head, digest, SHA256_BYTES);
	c->number = row->number;
	return 0;
}
