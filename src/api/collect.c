/* SPDX-License-Identifier: Apache-2.0 */
/* Output in bounded memory; see collect.h. */
#include "collect.h"

#include "lib/base/utf8.h"

enum { TEXT_SLACK = 128 };

void
collect_init(struct collect *c, size_t limit_bytes)
{
	*c = (struct collect){.half = limit_bytes / 2};
	buf_init(&c->head, c->half);
	buf_init(&c->tail, 2 * c->half);
}

void
collect_done(struct collect *c)
{
	buf_done(&c->head);
	buf_done(&c->tail);
}

static void
tail_add(struct collect *c, uint64_t offset, struct view data)
{
	if (data.n > c->half) {
		offset += data.n - c->half;
		data = view_skip(data, data.n - c->half);
	}
	if (c->tail.n == 0 || c->tail_from + c->tail.n != offset) {
		buf_clear(&c->tail);
		c->tail_from = offset;
	}
	if (c->tail.n + data.n > 2 * c->half) {
		size_t drop = c->tail.n + data.n - c->half;

		buf_drop(&c->tail, drop);
		c->tail_from += drop;
	}
	buf_add_view(&c->tail, data);
}

void
collect_add(struct collect *c, uint64_t offset, struct view data)
{
	size_t room = c->half - c->head.n;

	if (data.n == 0 || offset < c->seen || offset > UINT64_MAX - data.n)
		return; /* told already, or a lie */
	c->seen = offset + data.n;
	if (offset == c->head.n && c->tail.n == 0 && room > 0) {
		size_t n = data.n < room ? data.n : room;

		buf_add(&c->head, data.p, n);
		data = view_skip(data, n);
		offset += n;
	}
	if (data.n > 0)
		tail_add(c, offset, data);
}

void
collect_gap(struct collect *c, uint64_t from, uint64_t to)
{
	(void)from;
	if (to > c->seen)
		c->seen = to;
}

/* The last `half` bytes of the tail, and where they begin. */
static struct view
tail_view(const struct collect *c, uint64_t *ret_from)
{
	size_t skip = c->tail.n > c->half ? c->tail.n - c->half : 0;

	*ret_from = c->tail_from + skip;
	return view_skip(buf_view(&c->tail), skip);
}

struct view
utf8_whole(struct view v)
{
	for (size_t back = 1; back <= 3 && back <= v.n; back++) {
		uint8_t c = v.p[v.n - back];
		size_t want = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;

		if ((c & 0xc0) == 0x80)
			continue;
		return want > back ? view_of(v.p, v.n - back) : v;
	}
	return v;
}

/* Without the continuation bytes at its front: the character began in what was left out. */
static struct view
utf8_front(struct view v)
{
	size_t n = 0;

	while (n < 3 && n < v.n && (v.p[n] & 0xc0) == 0x80)
		n++;
	return view_skip(v, n);
}

void
base64_out(struct json_out *o, const char *key, struct view v)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	auto_buf struct buf text;

	buf_init(&text, v.n / 3 * 4 + 8);
	for (size_t i = 0; i < v.n; i += 3) {
		size_t n = v.n - i < 3 ? v.n - i : 3;
		uint32_t w = (uint32_t)v.p[i] << 16 | (uint32_t)(n > 1 ? v.p[i + 1] : 0) << 8 |
			     (n > 2 ? v.p[i + 2] : 0);
		char four[4] = {digits[w >> 18], digits[w >> 12 & 63],
			n > 1 ? digits[w >> 6 & 63] : '=', n > 2 ? digits[w & 63] : '='};

		buf_add(&text, four, sizeof(four));
	}
	json_out_key_str(o, key, buf_view(&text));
}

static void
bytes_out(const struct collect *c, const char *name, uint64_t seen, struct json_out *o)
{
	char key[32];
	uint64_t from, kept = c->head.n + tail_view(c, &from).n;

	(void)snprintf(key, sizeof(key), "%s_bytes", name);
	json_out_key(o, key);
	json_out_object_begin(o);
	json_out_key_int(o, "seen", (int64_t)seen);
	json_out_key_int(o, "kept", (int64_t)kept);
	json_out_key_int(o, "dropped", (int64_t)(seen > kept ? seen - kept : 0));
	json_out_key_int(o, "head", (int64_t)c->head.n);
	json_out_object_end(o);
}

void
collect_out(const struct collect *c, const char *name, uint64_t seen_by_relay, struct json_out *o)
{
	uint64_t from, seen = seen_by_relay > c->seen ? seen_by_relay : c->seen;
	struct view tail = tail_view(c, &from), head = buf_view(&c->head);
	auto_buf struct buf text, raw;
	char key[32];

	buf_init(&text, c->head.n + tail.n + TEXT_SLACK);
	buf_init(&raw, c->head.n + tail.n + 1);
	buf_add_view(&raw, head);
	buf_add_view(&raw, tail);
	if (seen > raw.n) {
		head = utf8_whole(head);
		tail = utf8_front(tail);
		buf_add_view(&text, head);
		buf_addf(&text, "\n[... %llu bytes left out ...]\n",
			(unsigned long long)(seen - raw.n));
		buf_add_view(&text, tail);
	} else {
		buf_add_view(&text, buf_view(&raw));
	}
	if (buf_check(&text) < 0 || buf_check(&raw) < 0) {
		o->b->failed = true; /* no memory: the answer as a whole is refused */
		return;
	}
	json_out_key_str(o, name, buf_view(&text));
	if (!view_utf8(buf_view(&text))) {
		(void)snprintf(key, sizeof(key), "%s_base64", name);
		base64_out(o, key, buf_view(&raw));
	}
	bytes_out(c, name, seen, o);
}
