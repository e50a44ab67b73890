/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the ledger; see ledger.h. */
#include "broker/index.h"
#include "broker/limits.h"

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/canon/read.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/file.h>
#include <sys/stat.h>

enum { LENGTH_BYTES = 4 };

static const char domain[] = "demilune-ledger-v1"; /* with its NUL */

struct ledger {
	int fd; /* owned, locked */
	uint64_t bytes, entries;
	uint8_t head[SHA256_BYTES];
	bool broken;
	struct index index;
};

static void
digest(const uint8_t previous[static SHA256_BYTES], struct view bytes,
	uint8_t ret[static SHA256_BYTES])
{
	struct sha256 h;

	sha256_init(&h);
	sha256_add(&h, domain, sizeof(domain));
	sha256_add(&h, previous, SHA256_BYTES);
	sha256_add(&h, bytes.p, bytes.n);
	sha256_end(&h, ret);
}

/* ---- reading at start ---- */

static int
damaged(const struct ledger *l, const char *why, struct err *err)
{
	return err_set(err, -EBADMSG,
		"the ledger is damaged in entry %" PRIu64 " at byte %" PRIu64
		" (%s); nothing is sent with it: put the true file back; with an older copy, or "
		"none, the host counts as restored",
		l->entries + 1, l->bytes, why);
}

/*
 * Is this the rest of an append that did not end? A length that was changed would look like it and take whole entries with it: then
 * somewhere in the rest the true end of this entry verifies.
 */
static bool
torn(const struct ledger *l, struct view rest)
{
	for (size_t n = 2; n + SHA256_BYTES <= rest.n; n++) {
		uint8_t d[SHA256_BYTES];

		if (rest.p[n - 1] != '}')
			continue;
		digest(l->head, view_of(rest.p, n), d);
		if (memcmp(d, rest.p + n, SHA256_BYTES) == 0)
			return false;
	}
	return true;
}

/* One entry at the front of `rest`. 1: taken, 0: it is not whole, negative: damage. */
static int
take(struct ledger *l, struct view rest, struct err *err)
{
	auto_buf struct buf room = {.max = LIMIT_ENTRY_BYTES};
	struct err why = {0};
	uint8_t d[SHA256_BYTES];
	struct view bytes;
	struct entry e;
	uint32_t n;

	if (rest.n < LENGTH_BYTES)
		return 0;
	n = (uint32_t)rest.p[0] << 24 | (uint32_t)rest.p[1] << 16 | (uint32_t)rest.p[2] << 8 |
	    rest.p[3];
	if (n == 0 || n > LIMIT_ENTRY_BYTES)
		return damaged(l, "an impossible length", err);
	if (rest.n < LENGTH_BYTES + n + SHA256_BYTES)
		return torn(l, view_skip(rest, LENGTH_BYTES))
			       ? 0
			       : damaged(l, "a length that is not true", err);
	bytes = view_of(rest.p + LENGTH_BYTES, n);
	digest(l->head, bytes, d);
	if (memcmp(d, bytes.p + n, SHA256_BYTES) != 0)
		return damaged(l, "its digest does not hold", err);
	if (entry_read(bytes, &room, &e, &why) < 0 ||
		index_add(&l->index, &e, l->bytes + LENGTH_BYTES, n, &why) < 0)
		return damaged(l, why.text, err);
	memcpy(l->head, d, SHA256_BYTES);
	l->bytes += LENGTH_BYTES + n + SHA256_BYTES;
	l->entries++;
	return 1;
}

static int
read_all(struct ledger *l, uint64_t *ret_cut, struct err *err)
{
	auto_buf struct buf b = {.max = 4 * LIMIT_ENTRY_BYTES};
	bool end = false;
	int r = 1;

	while (r == 1) {
		if (!end && b.n < LENGTH_BYTES + LIMIT_ENTRY_BYTES + SHA256_BYTES) {
			size_t want = 2 * LIMIT_ENTRY_BYTES, n = 0;
			uint8_t *to = buf_room(&b, want);

			if (to == NULL)
				return err_set(err, -ENOMEM, "no memory to read the ledger");
			if (fd_read_upto(l->fd, to, want, &n, err) < 0)
				return err_context(err, "ledger");
			buf_grew(&b, n);
			end = n < want;
		}
		uint64_t before = l->bytes;

		r = b.n == 0 ? 0 : take(l, buf_view(&b), err);
		if (r == 1)
			buf_drop(&b, (size_t)(l->bytes - before));
	}
	if (r < 0)
		return r;
	*ret_cut = b.n;
	if (b.n == 0)
		return 0;
	if (ftruncate(l->fd, (off_t)l->bytes) < 0 || fsync(l->fd) < 0)
		return err_errno(err, "cut the torn end of the ledger");
	return 0;
}

static int
open_file(int dir, int *ret, bool *ret_new, struct err *err)
{
	auto_fd int fd = openat(
		dir, "ledger", O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct stat st;

	if (fd < 0)
		return err_errno(err, "open the ledger");
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? err_set(err, -EBUSY,
						      "another broker has the ledger; there is one "
						      "broker for a state directory")
					    : err_errno(err, "lock the ledger");
	if (fstat(fd, &st) < 0)
		return err_errno(err, "look at the ledger");
	if (!S_ISREG(st.st_mode) || (st.st_mode & 077) != 0)
		return err_set(err, -EPERM,
			"the ledger is not a file that only the broker may read and write");
	*ret_new = st.st_size == 0;
	*ret = take_fd(&fd);
	return 0;
}

int
ledger_open(int dir, struct ledger **ret, uint64_t *ret_cut, struct err *err)
{
	struct ledger *l = calloc(1, sizeof(*l));
	struct entry first = {.kind = ENTRY_EPOCH, .epoch = 1};
	bool new = false;
	uint64_t cut = 0;

	if (l == NULL)
		return err_set(err, -ENOMEM, "no memory for the ledger");
	l->fd = -1;
	index_init(&l->index);
	first.ms = clock_real_ms();
	if (open_file(dir, &l->fd, &new, err) < 0 || read_all(l, &cut, err) < 0 ||
		/* A crash may have come before the first entry was whole. */
		(l->entries == 0 && (fsync(dir) < 0 ? err_errno(err, "write the state directory")
						    : ledger_add(l, &first, err)) < 0)) {
		ledger_close(l);
		return err->code;
	}
	*ret_cut = cut;
	*ret = l;
	return 0;
}

void
ledger_close(struct ledger *l)
{
	if (l == NULL)
		return;
	if (l->fd >= 0)
		(void)close(l->fd); /* each entry is on disk already */
	index_done(&l->index);
	free(l);
}

/* ---- writing ---- */

int
ledger_usable(const struct ledger *l, struct err *err)
{
	if (l->broken)
		return err_set(err, -EIO,
			"the ledger could not be written; the broker must be started again");
	if (l->bytes + LENGTH_BYTES + LIMIT_ENTRY_BYTES + SHA256_BYTES > LIMIT_LEDGER_BYTES)
		return err_set(err, -ENOSPC, "the ledger is full");
	return 0;
}

/* What was written of an entry that did not become whole is taken back; if that fails, nothing is written any more. */
static int
undo(struct ledger *l, struct err *err)
{
	int code = err->code;

	if (ftruncate(l->fd, (off_t)l->bytes) < 0 || fsync(l->fd) < 0)
		l->broken = true;
	return code;
}

int
ledger_add(struct ledger *l, const struct entry *e, struct err *err)
{
	auto_buf struct buf b = {.max = LENGTH_BYTES + LIMIT_ENTRY_BYTES + SHA256_BYTES};
	uint8_t d[SHA256_BYTES];
	struct view bytes;
	uint32_t n;

	if (ledger_usable(l, err) < 0 || index_check(&l->index, e, err) < 0)
		return err->code;
	buf_add(&b, (const uint8_t[LENGTH_BYTES]){0}, LENGTH_BYTES);
	if (entry_write(e, &b, err) < 0)
		return err->code;
	n = (uint32_t)(b.n - LENGTH_BYTES);
	if (n > LIMIT_ENTRY_BYTES)
		return err_set(err, -E2BIG, "the ledger entry is too large");
	for (unsigned i = 0; i < LENGTH_BYTES; i++)
		b.p[i] = (uint8_t)(n >> (24 - 8 * i));
	bytes = view_of(b.p + LENGTH_BYTES, n);
	digest(l->head, bytes, d);
	buf_add(&b, d, SHA256_BYTES);
	if (buf_check(&b) < 0)
		return err_set(err, -ENOMEM, "no memory for a ledger entry");
	if (fd_write_all(l->fd, b.p, b.n, err) < 0) {
		(void)err_context(err, "ledger");
		return undo(l, err);
	}
	/* After a failed fsync nobody knows what is on disk: the next start reads it. */
	if (fdatasync(l->fd) < 0) {
		l->broken = true;
		return err_errno(err, "write the ledger to disk");
	}
	if (index_add(&l->index, e, l->bytes + LENGTH_BYTES, n, err) < 0) {
		l->broken = true; /* it is on disk, and cannot be remembered */
		return err->code;
	}
	memcpy(l->head, d, SHA256_BYTES);
	l->bytes += b.n;
	l->entries++;
	return 0;
}

/* ---- asking ---- */

uint64_t
ledger_epoch(const struct ledger *l)
{
	return l->index.epoch;
}

uint64_t
ledger_entries(const struct ledger *l)
{
	return l->entries;
}

const struct spent *
ledger_by_proposal(const struct ledger *l, struct view proposal)
{
	return map_find(&l->index.proposal, proposal);
}

const struct spent *
ledger_by_execution(const struct ledger *l, struct view execution)
{
	return map_find(&l->index.execution, execution);
}

const struct spent *
ledger_by_key(const struct ledger *l, struct view key)
{
	return map_find(&l->index.key, key);
}

const struct spent *
ledger_by_receipt(
	const struct ledger *l, struct view provider, struct view account, struct view receipt)
{
	auto_buf struct buf key = {.max = LIMIT_ENTRY_BYTES};

	index_receipt_key(&key, provider, account, receipt);
	return buf_check(&key) < 0 ? NULL : map_find(&l->index.receipt, buf_view(&key));
}

bool
ledger_revoked(const struct ledger *l, struct view proposal)
{
	return map_find(&l->index.revoked, proposal) != NULL;
}

uint64_t
ledger_accepted_ms(const struct ledger *l, const uint8_t decision[static SHA256_BYTES])
{
	const uint64_t *ms = map_find(&l->index.accepted, view_of(decision, SHA256_BYTES));

	return ms == NULL ? 0 : *ms;
}

bool
ledger_scope_contained(const struct ledger *l, struct view scope)
{
	const bool *is = map_find(&l->index.contained, scope);

	return is != NULL && *is;
}

static bool
prefixed_contained(const struct ledger *l, const char *prefix, struct view name)
{
	char scope[128];

	if (name.n > 100)
		return true; /* no such name was ever given */
	(void)snprintf(scope, sizeof(scope), "%s%.*s", prefix, VIEW_ARGS(name));
	return ledger_scope_contained(l, view_str(scope));
}

const char *
ledger_contained(const struct ledger *l, struct view task, struct view tenant)
{
	if (ledger_scope_contained(l, view_str("host")))
		return "host";
	if (prefixed_contained(l, "tenant:", tenant))
		return "tenant";
	return prefixed_contained(l, "task:", task) ? "task" : NULL;
}

bool
ledger_released(const struct ledger *l, const uint8_t record[static SHA256_BYTES])
{
	return map_find(&l->index.released, view_of(record, SHA256_BYTES)) != NULL;
}

const struct spent *
ledger_open_in(const struct ledger *l, struct view scope)
{
	for (const struct spent *s = l->index.first; s != NULL; s = s->next) {
		bool in = view_is(scope, "host") ||
			  (view_starts(scope, "tenant:") &&
				  view_is(view_skip(scope, 7), s->tenant)) ||
			  (view_starts(scope, "task:") && view_is(view_skip(scope, 5), s->task));

		if (in && (s->outcome == OUTCOME_OPEN || s->outcome == OUTCOME_UNKNOWN))
			return s;
	}
	return NULL;
}

int
ledger_ended(const struct ledger *l, const struct spent *s, struct buf *room, struct entry *ret,
	struct err *err)
{
	uint8_t *p;

	if (s->ended_at == 0)
		return err_set(err, -ENOENT, "it has no end");
	p = buf_room(room, 2 * s->ended_n);
	if (p == NULL)
		return err_set(err, -ENOMEM, "no memory for a ledger entry");
	if (pread(l->fd, p, s->ended_n, (off_t)s->ended_at) != (ssize_t)s->ended_n)
		return err_errno(err, "read the ledger");
	buf_grew(room, s->ended_n);
	return entry_read(view_of(p, s->ended_n), room, ret, err);
}
