/* SPDX-License-Identifier: Apache-2.0 */
/* Questions read and answers written; see dns.h. Called by dns_serve.c. It has never seen a name server. */
#include "dns.h"

#include <errno.h>
#include <sys/socket.h>

enum {
	HEADER = 12,
	QR = 0x80, /* of byte 2 */
	OPCODE = 0x78,
	TC = 0x02,
	RD = 0x01,
	RA = 0x80, /* of byte 3 */
	NAME_WIRE_MAX = 255,
	CLASS_IN = 1,
	TYPE_A = 1,
	TYPE_AAAA = 28,
	TYPE_OPT = 41,
	EDNS_BYTES = 1232,
	QUESTION_AT = 0xc000 | HEADER, /* a pointer to the name of the question */
};

static uint16_t
be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void
add16(struct buf *b, unsigned v)
{
	buf_add_byte(b, (uint8_t)(v >> 8));
	buf_add_byte(b, (uint8_t)v);
}

static void
add32(struct buf *b, uint32_t v)
{
	add16(b, v >> 16);
	add16(b, v & 0xffff);
}

static uint8_t
lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c + ('a' - 'A')) : c;
}

/*
 * Bytes of the name, or 0: it breaks off, is too long, or has a label of another kind (a question has nothing to point back at). A label
 * may hold any byte; with a dot inside one the text would read like another name, so it is none.
 */
static size_t
name_read(struct view at, char text[static NAME_WIRE_MAX], size_t *ret_n)
{
	bool plain = true;
	size_t i = 0, n = 0;

	for (;;) {
		size_t label = i < at.n ? at.p[i] : UINT8_MAX;

		if (label > HOST_LABEL_MAX || i + 1 + label > NAME_WIRE_MAX || i + 1 + label > at.n)
			return 0;
		i++;
		if (label == 0)
			break;
		if (n != 0)
			text[n++] = '.';
		for (size_t k = 0; k < label; k++, i++) {
			plain &= at.p[i] != '.';
			text[n++] = (char)lower(at.p[i]);
		}
	}
	*ret_n = plain && host_name_ok(view_of(text, n)) ? n : 0;
	return i;
}

/* The whole of `at` is one OPT record (RFC 6891) of version 0, whose options keep to their lengths. What they say is nobody's business here. */
static bool
edns_ok(struct view at)
{
	size_t n, i = 11;

	if (at.n < i || at.p[0] != 0 || be16(at.p + 1) != TYPE_OPT || at.p[6] != 0)
		return false;
	n = be16(at.p + 9);
	if (at.n - i != n)
		return false;
	while (i < at.n) {
		if (at.n - i < 4 || at.n - i - 4 < be16(at.p + i + 2))
			return false;
		i += 4 + (size_t)be16(at.p + i + 2);
	}
	return true;
}

static int
refuse(enum dns_code *ret_code, enum dns_code code)
{
	*ret_code = code;
	return -EINVAL;
}

int
dns_asked_read(struct view message, struct dns_asked *ret, enum dns_code *ret_code)
{
	struct dns_asked q = {0};
	char text[NAME_WIRE_MAX];
	struct view rest;
	size_t name;

	if (message.n < HEADER || (message.p[2] & QR) != 0)
		return -ENOMSG;
	if ((message.p[2] & OPCODE) != 0)
		return refuse(ret_code, DNS_NOTIMP);
	/* One question, no answers, no authorities, at most the OPT record. */
	if ((message.p[2] & TC) != 0 || be16(message.p + 4) != 1 || be16(message.p + 6) != 0 ||
		be16(message.p + 8) != 0 || be16(message.p + 10) > 1 || message.n > DNS_MESSAGE_MAX)
		return refuse(ret_code, DNS_FORMERR);
	rest = view_skip(message, HEADER);
	name = name_read(rest, text, &q.name_n);
	if (name == 0 || rest.n < name + 4)
		return refuse(ret_code, DNS_FORMERR);
	q.wire = view_of(rest.p, name + 4);
	q.type = be16(rest.p + name);
	q.class = be16(rest.p + name + 2);
	rest = view_skip(rest, name + 4);
	q.edns = be16(message.p + 10) == 1;
	if (q.type == TYPE_OPT || (q.edns ? !edns_ok(rest) : rest.n != 0))
		return refuse(ret_code, DNS_FORMERR);
	if (q.class != CLASS_IN)
		return refuse(ret_code, DNS_NOTIMP);
	q.id = be16(message.p);
	q.recursion = (message.p[2] & RD) != 0;
	memcpy(q.name, text, q.name_n);
	*ret = q;
	return 0;
}

static void
header_write(struct buf *out, unsigned id, bool recursion, enum dns_code code,
	const unsigned counts[static 4])
{
	add16(out, id);
	buf_add_byte(out, (uint8_t)(QR | (recursion ? RD : 0)));
	buf_add_byte(out, (uint8_t)(RA | (unsigned)code));
	for (size_t i = 0; i < 4; i++)
		add16(out, counts[i]);
}

void
dns_answer_write(struct buf *out, const struct dns_asked *q, enum dns_code code,
	const struct address *a, uint32_t ttl)
{
	bool has = code == DNS_NOERROR && a != NULL;

	header_write(out, q->id, q->recursion, code,
		(const unsigned[4]){1, has ? 1 : 0, 0, q->edns ? 1 : 0});
	buf_add_view(out, q->wire);
	if (has) {
		unsigned n = a->family == AF_INET ? 4 : 16;

		add16(out, QUESTION_AT);
		add16(out, a->family == AF_INET ? TYPE_A : TYPE_AAAA);
		add16(out, CLASS_IN);
		add32(out, ttl);
		add16(out, n);
		buf_add(out, a->b, n);
	}
	if (q->edns) {
		buf_add_byte(out, 0);
		add16(out, TYPE_OPT);
		add16(out, EDNS_BYTES);
		add32(out, 0);
		add16(out, 0);
	}
}

void
dns_error_write(struct buf *out, struct view message, enum dns_code code)
{
	must(message.n >= HEADER);
	header_write(out, be16(message.p), (message.p[2] & RD) != 0, code, (const unsigned[4]){0});
}
