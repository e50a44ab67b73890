/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See hello.h. First only the lengths of records are followed, until the message is complete; then it is read once, by a cursor that steps over
 * the headers of records, without a copy. RFC 8446, sections 4.1.2 and 5.1; RFC 6066, section 3; RFC 7301.
 */
#include "hello.h"

#include "lib/base/host.h"

enum {
	RECORD_HEADER = 5,
	RECORD_HANDSHAKE = 22,
	RECORD_MAX = 16384,
	MESSAGE_HEADER = 4,
	CLIENT_HELLO = 1,
	RANDOM = 32,
	SESSION_MAX = 32,
	EXTENSION_SERVER_NAME = 0,
	EXTENSION_ALPN = 16,
	EXTENSION_ECH = 0xfe0d,
	EXTENSION_ESNI = 0xffce, /* what ECH was called in its drafts */
	NAME_TYPE_HOST = 0,
};

/* ---- records ---- */

/* Of the header at `at` as much as there is. */
static bool
header_is_fine(struct view bytes, size_t at)
{
	size_t have = bytes.n - at, n;

	if ((have > 0 && bytes.p[at] != RECORD_HANDSHAKE) || (have > 1 && bytes.p[at + 1] != 3) ||
		(have > 2 && bytes.p[at + 2] > 4))
		return false;
	if (have < RECORD_HEADER)
		return true;
	n = (size_t)bytes.p[at + 3] << 8 | bytes.p[at + 4];
	return n != 0 && n <= RECORD_MAX;
}

/* The first bytes of the message: its kind, and its length when there are all. */
struct head {
	uint8_t b[MESSAGE_HEADER];
	size_t n;
};

static bool
head_add(struct head *h, const uint8_t *p, size_t n)
{
	while (n-- > 0 && h->n < MESSAGE_HEADER)
		h->b[h->n++] = *p++;
	return h->n == 0 || h->b[0] == CLIENT_HELLO;
}

static size_t
head_length(const struct head *h)
{
	return (size_t)h->b[1] << 16 | (size_t)h->b[2] << 8 | h->b[3];
}

/* DONE: *ret_n bytes of the message stand behind its head. */
static enum hello_verdict
follow(struct view bytes, size_t *ret_n)
{
	struct head head = {0};
	size_t at = 0, got = 0; /* of the message */

	while (at < bytes.n) {
		size_t n, have;

		if (!header_is_fine(bytes, at))
			return HELLO_NOT_TLS;
		if (bytes.n - at < RECORD_HEADER)
			break;
		n = (size_t)bytes.p[at + 3] << 8 | bytes.p[at + 4];
		at += RECORD_HEADER;
		have = bytes.n - at < n ? bytes.n - at : n;
		if (!head_add(&head, bytes.p + at, have))
			return HELLO_NOT_TLS;
		if (head.n == MESSAGE_HEADER) {
			size_t all = MESSAGE_HEADER + head_length(&head);

			if (all > HELLO_MAX - RECORD_HEADER)
				return HELLO_LONG;
			if (got + n > all) /* its last record ends with it */
				return HELLO_NOT_TLS;
			if (got + have == all) {
				*ret_n = all - MESSAGE_HEADER;
				return at + have > HELLO_MAX ? HELLO_LONG : HELLO_DONE;
			}
		}
		got += have;
		at += have;
		if (have < n)
			break;
	}
	return bytes.n >= HELLO_MAX ? HELLO_LONG : HELLO_MORE;
}

/* ---- a cursor over what records carry ---- */

struct cursor {
	const uint8_t *p;
	size_t in_record; /* bytes before the next header */
	size_t left;      /* bytes that may be taken */
	bool bad;         /* more was asked for */
};

/* Up to n bytes into `to` (or nowhere). */
static void
take(struct cursor *c, uint8_t *to, size_t n)
{
	if (n > c->left) {
		c->bad = true;
		c->left = 0;
		return;
	}
	c->left -= n;
	while (n > 0) {
		size_t k;

		if (c->in_record == 0) {
			c->in_record = (size_t)c->p[3] << 8 | c->p[4];
			c->p += RECORD_HEADER;
		}
		k = n < c->in_record ? n : c->in_record;
		if (to != NULL) {
			memcpy(to, c->p, k);
			to += k;
		}
		c->p += k;
		c->in_record -= k;
		n -= k;
	}
}

static size_t
number(struct cursor *c, size_t bytes)
{
	uint8_t b[2] = {0};

	take(c, b + 2 - bytes, bytes);
	return (size_t)b[0] << 8 | b[1];
}

/* The next n bytes as a cursor of their own; the other one stands behind them. */
static struct cursor
part(struct cursor *c, size_t n)
{
	struct cursor in = *c;

	take(c, NULL, n);
	in.left = n;
	in.bad = c->bad;
	if (in.bad)
		in.left = 0;
	return in;
}

static bool
whole(const struct cursor *c)
{
	return !c->bad && c->left == 0;
}

/* ---- extensions ---- */

static void
set_name(struct hello *h, const uint8_t *p, size_t n)
{
	h->name_bad = n > HOST_NAME_MAX_BYTES;
	if (h->name_bad)
		return;
	for (size_t i = 0; i < n; i++)
		h->name[i] = (char)(p[i] >= 'A' && p[i] <= 'Z' ? p[i] - 'A' + 'a' : p[i]);
	h->name_n = n;
	h->name_bad = !host_name_ok(view_of(h->name, n));
	if (h->name_bad)
		h->name_n = 0;
}

static bool
read_server_name(struct cursor *c, struct hello *h)
{
	uint8_t name[HOST_NAME_MAX_BYTES + 1] = {0};
	struct cursor list = part(c, number(c, 2)), one;
	size_t type, n;

	h->has_name = true;
	h->name_bad = list.left == 0;
	for (size_t i = 0; list.left != 0; i++) {
		type = number(&list, 1);
		n = number(&list, 2);
		one = part(&list, n);
		if (i != 0 || type != NAME_TYPE_HOST || n >= sizeof(name)) {
			h->name_bad = true;
			h->name_n = 0;
			continue;
		}
		take(&one, name, n);
		set_name(h, name, n);
	}
	return whole(&list) && whole(c);
}

static bool
read_protocols(struct cursor *c, struct hello *h)
{
	struct cursor list = part(c, number(c, 2)), one;
	uint8_t protocol[8];
	bool empty = list.left == 0;

	h->http1 = false;
	while (list.left != 0) {
		size_t n = number(&list, 1);

		one = part(&list, n);
		empty |= n == 0;
		if (n == sizeof(protocol)) {
			take(&one, protocol, n);
			h->http1 |= !one.bad && view_is(view_of(protocol, n), "http/1.1");
		}
	}
	return !empty && whole(&list) && whole(c);
}

static bool
read_extension(size_t type, struct cursor *c, struct hello *h)
{
	if (type == EXTENSION_SERVER_NAME)
		return read_server_name(c, h);
	if (type == EXTENSION_ALPN)
		return read_protocols(c, h);
	h->ech |= type == EXTENSION_ECH || type == EXTENSION_ESNI;
	return true;
}

static bool
read_extensions(struct cursor *c, struct hello *h)
{
	uint8_t seen[65536 / 8] = {0};

	while (c->left != 0) {
		size_t type = number(c, 2);
		struct cursor in = part(c, number(c, 2));

		if (in.bad || (seen[type / 8] & 1U << type % 8) != 0)
			return false;
		seen[type / 8] |= (uint8_t)(1U << type % 8);
		if (!read_extension(type, &in, h))
			return false;
	}
	return !c->bad;
}

static bool
read_message(struct cursor *c, struct hello *h)
{
	size_t n;

	h->http1 = true;
	if (number(c, 1) != 3)
		return false;
	take(c, NULL, 1 + RANDOM);
	n = number(c, 1);
	if (n > SESSION_MAX)
		return false;
	take(c, NULL, n);
	n = number(c, 2); /* ciphers */
	if (n == 0 || n % 2 != 0)
		return false;
	take(c, NULL, n);
	n = number(c, 1); /* ways to compress */
	if (n == 0)
		return false;
	take(c, NULL, n);
	if (c->bad || c->left == 0)
		return !c->bad; /* one without extensions */
	n = number(c, 2);
	return n == c->left && read_extensions(c, h);
}

enum hello_verdict
hello_read(struct view bytes, struct hello *ret)
{
	struct hello h = {0};
	struct cursor c = {.p = bytes.p};
	enum hello_verdict v;
	size_t n = 0;

	v = follow(bytes, &n);
	if (v != HELLO_DONE)
		return v;
	c.left = MESSAGE_HEADER + n;
	take(&c, NULL, MESSAGE_HEADER);
	if (!read_message(&c, &h))
		return HELLO_NOT_TLS;
	*ret = h;
	return HELLO_DONE;
}
