/* SPDX-License-Identifier: Apache-2.0 */
/* The table of origins; see origins.h. Called by main.c before the jail and by dial.c. */
#include "origins.h"

#include "lib/canon/read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

static int
text_read(struct canon_reader *r, struct view *ret, struct err *err)
{
	struct canon_token t;
	int rc = canon_want(r, CANON_STR, &t, err);

	if (rc < 0)
		return rc;
	if (t.escaped)
		return err_set(err, -EINVAL, "a text of the origins has escapes");
	*ret = t.raw;
	return 0;
}

static int
host_set(struct origin *o, struct view host, struct err *err)
{
	struct address literal;
	bool is_literal = address_parse(host, &literal) == 0;

	if (!is_literal && !host_name_ok(host))
		return err_set(err, -EINVAL, "a host of the origins is no name and no address");
	if (is_literal && o->exact && !address_eq(&literal, &o->address))
		return err_set(err, -EINVAL, "an origin is one address and has another");
	memcpy(o->host, host.p, host.n);
	if (is_literal && !o->exact) {
		o->literal = true;
		o->address = literal;
	}
	return 0;
}

/* {"address":...,"host":...,"port":...}; the reader has taken the brace. */
static int
row_read(struct canon_reader *r, struct origin *ret, struct err *err)
{
	struct origin o = {.port = 0};
	struct canon_token t;
	struct view text;
	int rc = canon_want(r, CANON_KEY, &t, err);

	if (rc == 0 && view_is(t.raw, "address")) {
		rc = text_read(r, &text, err);
		if (rc == 0 && address_parse(text, &o.address) < 0)
			rc = err_set(err, -EINVAL, "an address of the origins is not one");
		o.literal = o.exact = true;
		if (rc == 0)
			rc = canon_want(r, CANON_KEY, &t, err);
	}
	if (rc == 0 && !view_is(t.raw, "host"))
		rc = err_set(
			err, -EINVAL, "an origin has a host, a port and no other than an address");
	if (rc == 0)
		rc = text_read(r, &text, err);
	if (rc == 0)
		rc = host_set(&o, text, err);
	if (rc == 0)
		rc = canon_want_key(r, "port", err);
	if (rc == 0)
		rc = canon_want(r, CANON_INT, &t, err);
	if (rc == 0 && (t.i < 1 || t.i > UINT16_MAX))
		rc = err_set(err, -EINVAL, "a port is 1 to 65535");
	if (rc < 0)
		return rc;
	o.port = (uint16_t)t.i;
	rc = canon_want(r, CANON_OBJECT_END, &t, err);
	if (rc == 0)
		*ret = o;
	return rc;
}

static int
row_compare(const struct origin *a, struct view host, uint16_t port)
{
	int d = canon_key_compare(view_str(a->host), host);

	return d != 0 ? d : (a->port > port) - (a->port < port);
}

static int
rows_read(struct canon_reader *r, struct origins *o, struct err *err)
{
	struct canon_token t;
	int rc;

	for (;;) {
		struct origin *row = &o->row[o->n];

		rc = canon_next(r, &t, err);
		if (rc < 0 || t.type == CANON_ARRAY_END)
			return rc;
		if (t.type != CANON_OBJECT_BEGIN)
			return err_set(err, -EINVAL, "an origin is an object");
		if (o->n == ORIGINS_MAX)
			return err_set(err, -E2BIG, "there are more than %d origins", ORIGINS_MAX);
		rc = row_read(r, row, err);
		if (rc < 0)
			return rc;
		if (o->n > 0 && row_compare(&o->row[o->n - 1], view_str(row->host), row->port) >= 0)
			return err_set(err, -EINVAL, "origins ascend, and each is there once");
		o->n++;
	}
}

int
origins_read(struct view document, struct origins *ret, struct err *err)
{
	struct origins o = {.row = calloc(ORIGINS_MAX + 1, sizeof(*o.row))};
	struct canon_reader r;
	struct canon_token t;
	int rc;

	if (o.row == NULL)
		return err_set(err, -ENOMEM, "no memory for the origins");
	canon_reader_init(&r, document, false);
	rc = canon_want(&r, CANON_OBJECT_BEGIN, &t, err);
	if (rc == 0)
		rc = canon_want_key(&r, "origins", err);
	if (rc == 0)
		rc = canon_want(&r, CANON_ARRAY_BEGIN, &t, err);
	if (rc == 0)
		rc = rows_read(&r, &o, err);
	if (rc == 0)
		rc = canon_want(&r, CANON_OBJECT_END, &t, err);
	if (rc == 0)
		rc = canon_want(&r, CANON_END, &t, err);
	if (rc < 0) {
		origins_done(&o);
		return rc;
	}
	*ret = o;
	return 0;
}

int
origins_load(int fd, struct origins *ret, struct err *err)
{
	const int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	int have = fcntl(fd, F_GET_SEALS);
	auto_free uint8_t *text = NULL;
	struct stat st;
	ssize_t n;

	if (have < 0 || (have & seals) != seals)
		return err_set(err, -EPROTO, "the origins are no sealed memory file");
	if (fstat(fd, &st) < 0)
		return err_errno(err, "the origins");
	if (st.st_size < 0 || st.st_size > ORIGINS_BYTES_MAX)
		return err_set(err, -E2BIG, "the origins are too large");
	text = malloc((size_t)st.st_size + 1);
	if (text == NULL)
		return err_set(err, -ENOMEM, "no memory for the origins");
	n = pread(fd, text, (size_t)st.st_size, 0);
	if (n != st.st_size)
		return err_errno(err, "the origins");
	return origins_read(view_of(text, (size_t)n), ret, err);
}

void
origins_done(struct origins *o)
{
	free(take_ptr(o->row));
	o->n = 0;
}

const struct origin *
origins_find(const struct origins *o, struct view host, uint16_t port)
{
	size_t low = 0, high = o->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int d = row_compare(&o->row[mid], host, port);

		if (d == 0)
			return &o->row[mid];
		if (d < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}
