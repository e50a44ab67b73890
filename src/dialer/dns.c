/* SPDX-License-Identifier: Apache-2.0 */
/* DNS messages; see dns.h. Called by resolve.c with bytes from the network, and by its fuzz harness. */
#include "dns.h"

#include <errno.h>

enum {
	HEADER_BYTES = 12,
	QUESTION_TAIL = 4, /* type and class */
	CLASS_IN = 1,
	NAME_WIRE_MAX = 255,
	POINTERS_MAX = 16, /* of one name: writers need one */
	FLAG_ANSWER = 0x8000,
	FLAGS_OPCODE = 0x7800,
	FLAG_TRUNCATED = 0x0200,
	FLAG_RECURSION_DESIRED = 0x0100,
	FLAGS_RCODE = 0x000f,
	RCODE_OK = 0,
	RCODE_NO_NAME = 3,
};

int
dns_question_make(struct view name, enum dns_type type, const uint8_t noise[static 34],
	struct dns_question *ret, struct err *err)
{
	struct dns_question q = {.type = type, .id = (uint16_t)(noise[0] << 8 | noise[1]), .n = 1};
	size_t label = 0; /* where the length of the present one stands */

	if (!host_name_ok(name))
		return err_set(err, -EINVAL, "it is not a name of DNS");
	for (size_t i = 0; i <= name.n; i++) {
		if (i == name.n || name.p[i] == '.') {
			q.wire[label] = (uint8_t)(q.n - label - 1);
			label = q.n;
			q.wire[q.n++] = 0;
			continue;
		}
		q.wire[q.n] = name.p[i];
		if (name.p[i] >= 'a' && (noise[2 + i / 8] >> i % 8 & 1) != 0)
			q.wire[q.n] = (uint8_t)(name.p[i] - 'a' + 'A');
		q.n++;
	}
	*ret = q;
	return 0;
}

static void
put16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static unsigned
get16(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

size_t
dns_query_write(const struct dns_question *q, uint8_t ret[static DNS_QUERY_MAX])
{
	memset(ret, 0, HEADER_BYTES);
	put16(ret, q->id);
	put16(ret + 2, FLAG_RECURSION_DESIRED);
	put16(ret + 4, 1);
	memcpy(ret + HEADER_BYTES, q->wire, q->n);
	put16(ret + HEADER_BYTES + q->n, q->type);
	put16(ret + HEADER_BYTES + q->n + 2, CLASS_IN);
	return HEADER_BYTES + q->n + QUESTION_TAIL;
}

/* ---- reading ---- */

struct name {
	uint8_t wire[NAME_WIRE_MAX]; /* letters in lower case */
	size_t n;
};

static uint8_t
lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c - 'A' + 'a') : c;
}

static bool
name_eq(const struct name *a, const struct name *b)
{
	return a->n == b->n && memcmp(a->wire, b->wire, a->n) == 0;
}

/*
 * The name at *at, which is moved behind it. A pointer leads to an earlier byte than all read of this name so far, so that
 * there is no circle.
 */
static int
name_read(struct view m, size_t *at, struct name *ret)
{
	size_t i = *at, lowest = *at, after = 0;
	struct name name = {.n = 0};
	unsigned pointers = 0;

	for (;;) {
		size_t n;

		if (i >= m.n)
			return -EPROTO;
		n = m.p[i];
		if ((n & 0xc0) == 0xc0) {
			size_t to;

			if (m.n - i < 2 || ++pointers > POINTERS_MAX)
				return -EPROTO;
			to = get16(m.p + i) & 0x3fff;
			if (to >= lowest || to < HEADER_BYTES)
				return -EPROTO;
			if (after == 0)
				after = i + 2;
			i = lowest = to;
			continue;
		}
		if (n > HOST_LABEL_MAX || m.n - i <= n || name.n + 1 + n > NAME_WIRE_MAX)
			return -EPROTO;
		name.wire[name.n++] = (uint8_t)n;
		for (size_t k = 0; k < n; k++)
			name.wire[name.n++] = lower(m.p[i + 1 + k]);
		i += 1 + n;
		if (n == 0)
			break;
	}
	*at = after != 0 ? after : i;
	*ret = name;
	return 0;
}

struct record {
	struct name owner;
	unsigned type, class;
	size_t data; /* where its data begin */
	size_t data_n;
};

static int
record_read(struct view m, size_t *at, struct record *ret)
{
	if (name_read(m, at, &ret->owner) < 0 || m.n - *at < 10)
		return -EPROTO;
	ret->type = get16(m.p + *at);
	ret->class = get16(m.p + *at + 2);
	ret->data_n = get16(m.p + *at + 8);
	ret->data = *at + 10;
	if (m.n - ret->data < ret->data_n)
		return -EPROTO;
	*at = ret->data + ret->data_n;
	return 0;
}

/* The target of an alias; its name ends where the data end. */
static int
alias_target(struct view m, const struct record *r, struct name *ret)
{
	size_t at = r->data;

	if (name_read(m, &at, ret) < 0 || at != r->data + r->data_n)
		return -EPROTO;
	return 0;
}

struct reading {
	struct view m;
	enum dns_type type;
	size_t first;     /* of the answer section */
	unsigned answers; /* its records */
};

/* The only alias of this name: 1 and its target, 0: none, -EPROTO: two, or malformed. */
static int
alias_of(const struct reading *r, const struct name *of, struct name *ret)
{
	size_t at = r->first;
	int found = 0;

	for (unsigned i = 0; i < r->answers; i++) {
		struct record record;

		if (record_read(r->m, &at, &record) < 0)
			return -EPROTO;
		if (record.type != DNS_CNAME || record.class != CLASS_IN ||
			!name_eq(&record.owner, of))
			continue;
		if (found != 0 || alias_target(r->m, &record, ret) < 0)
			return -EPROTO;
		found = 1;
	}
	return found;
}

/* All addresses of this name. */
static int
addresses_of(const struct reading *r, const struct name *of, struct dns_answer *ret)
{
	size_t size = r->type == DNS_A ? 4 : 16, at = r->first;

	for (unsigned i = 0; i < r->answers; i++) {
		struct record record;

		if (record_read(r->m, &at, &record) < 0)
			return -EPROTO;
		if (record.type != r->type || record.class != CLASS_IN ||
			!name_eq(&record.owner, of))
			continue;
		if (record.data_n != size || ret->n == DNS_ADDRESSES_MAX)
			return -EPROTO;
		ret->address[ret->n].family = r->type == DNS_A ? AF_INET : AF_INET6;
		memcpy(ret->address[ret->n++].b, r->m.p + record.data, size);
	}
	return 0;
}

static int
chain_follow(const struct reading *r, struct name *name, struct dns_answer *ret, struct err *err)
{
	for (int i = 0; i <= DNS_ALIASES_MAX; i++) {
		struct name next;
		int found = alias_of(r, name, &next);

		if (found < 0)
			return err_set(
				err, -EPROTO, "the aliases of the answer contradict each other");
		if (found == 0) {
			if (addresses_of(r, name, ret) < 0)
				return err_set(err, -EPROTO,
					"the answer has more than %d addresses, or one that is "
					"none",
					DNS_ADDRESSES_MAX);
			return 0;
		}
		*name = next;
	}
	return err_set(err, -EPROTO, "the answer has more than %d aliases, or a circle of them",
		DNS_ALIASES_MAX);
}

/* All records of all sections, to the last byte of the message. */
static int
sections_check(struct view m, size_t at, struct err *err)
{
	unsigned records = get16(m.p + 6) + get16(m.p + 8) + get16(m.p + 10);

	if (records > DNS_RECORDS_MAX)
		return err_set(err, -EPROTO, "the answer has %u records", records);
	for (unsigned i = 0; i < records; i++) {
		struct record record;

		if (record_read(m, &at, &record) < 0)
			return err_set(err, -EPROTO, "a record of the answer is cut");
	}
	if (at != m.n)
		return err_set(err, -EPROTO, "something follows the answer");
	return 0;
}

/* Is this an answer to our question: header and question, byte for byte. */
static bool
is_answer(struct view m, const struct dns_question *q)
{
	unsigned flags;

	if (m.n < HEADER_BYTES + q->n + QUESTION_TAIL || get16(m.p) != q->id)
		return false;
	flags = get16(m.p + 2);
	return (flags & FLAG_ANSWER) != 0 && (flags & FLAGS_OPCODE) == 0 && get16(m.p + 4) == 1 &&
	       memcmp(m.p + HEADER_BYTES, q->wire, q->n) == 0 &&
	       get16(m.p + HEADER_BYTES + q->n) == (unsigned)q->type &&
	       get16(m.p + HEADER_BYTES + q->n + 2) == CLASS_IN;
}

int
dns_answer_read(
	struct view message, const struct dns_question *q, struct dns_answer *ret, struct err *err)
{
	struct reading r = {
		.m = message, .type = q->type, .first = HEADER_BYTES + q->n + QUESTION_TAIL};
	struct dns_answer answer = {0};
	struct name name;
	size_t at = HEADER_BYTES;
	unsigned flags;
	int code;

	if (!is_answer(message, q))
		return err_set(err, -ENOMSG, "an answer to another question");
	flags = get16(message.p + 2);
	if ((flags & FLAG_TRUNCATED) != 0) {
		*ret = (struct dns_answer){.truncated = true};
		return 0;
	}
	if ((flags & FLAGS_RCODE) != RCODE_OK && (flags & FLAGS_RCODE) != RCODE_NO_NAME)
		return err_set(
			err, -EAGAIN, "the name server answers with code %u", flags & FLAGS_RCODE);
	code = sections_check(message, r.first, err);
	if (code < 0)
		return code;
	r.answers = get16(message.p + 6);
	if (name_read(message, &at, &name) < 0)
		return err_set(err, -EPROTO, "the question of the answer is cut");
	answer.no_name = (flags & FLAGS_RCODE) == RCODE_NO_NAME;
	if (!answer.no_name) {
		code = chain_follow(&r, &name, &answer, err);
		if (code < 0)
			return code;
	}
	*ret = answer;
	return 0;
}
