/* SPDX-License-Identifier: Apache-2.0 */
/* See feed.h. */
#include "feed.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

struct run {
	struct feed *ret;
	struct http_scan scan;
	struct http_body body;
	const struct http_limits *limits;
};

static void
run_body(struct run *r, struct view input, size_t have)
{
	struct view in = view_of(input.p + r->ret->used, have - r->ret->used), data;

	for (;;) {
		enum http_body_event e = http_body_next(&r->body, &in, &data);

		r->ret->used = have - in.n;
		if (e == HTTP_BODY_MORE)
			return;
		if (e == HTTP_BODY_END)
			r->ret->end = FEED_DONE;
		if (e == HTTP_BODY_REFUSED) {
			r->ret->end = FEED_REFUSED;
			r->ret->reason = r->body.reason;
		}
		r->ret->body_odd = r->body.odd;
		if (e != HTTP_BODY_DATA)
			return;
		assert_true(data.n > 0 && data.n <= FEED_BODY - r->ret->body_n);
		memcpy(r->ret->body + r->ret->body_n, data.p, data.n);
		r->ret->body_n += data.n;
	}
}

/* The head comes from a copy of the right size first, so that a read behind it shows. */
static int
run_head(struct run *r, struct view input, size_t have)
{
	struct http_scan probe = r->scan;
	auto_free uint8_t *copy = malloc(have);
	int got, again;

	assert_non_null(copy);
	memcpy(copy, input.p, have);
	got = http_head_feed(&probe, view_of(copy, have), &r->ret->head);
	again = http_head_feed(&r->scan, view_of(input.p, have), &r->ret->head);
	assert_int_equal(got, again);
	return got;
}

static void
run_to(struct run *r, struct view input, size_t have)
{
	if (!r->ret->in_body) {
		int got = run_head(r, input, have);

		if (got == 0)
			return;
		if (got < 0) {
			r->ret->end = FEED_REFUSED;
			r->ret->reason = r->scan.reason;
			return;
		}
		r->ret->in_body = true;
		r->ret->used = r->scan.pos;
		if (r->ret->head.framing == HTTP_BODY_TUNNEL) {
			r->ret->end = FEED_DONE;
			return;
		}
		http_body_init(&r->body, &r->ret->head, r->limits->body_bytes);
	}
	run_body(r, input, have);
}

void
feed_run(struct feed *ret, const struct feed_side *side, const struct http_limits *limits,
	struct view input, size_t first, size_t step)
{
	struct run r = {.ret = ret, .limits = limits};

	memset(ret, 0, sizeof(*ret));
	if (side->side == HTTP_REQUEST)
		http_scan_request(&r.scan, limits);
	else
		http_scan_response(&r.scan, limits, side->asked, side->switch_asked);
	for (size_t have = first; ret->end == FEED_PENDING; have += step) {
		run_to(&r, input, have < input.n ? have : input.n);
		if (have >= input.n)
			break;
	}
}

static void
same(const struct feed *a, const struct feed *b, const char *id, size_t cut)
{
	if (a->end == b->end && a->reason == b->reason && a->in_body == b->in_body &&
		a->body_n == b->body_n && memcmp(a->body, b->body, a->body_n) == 0 &&
		(a->end != FEED_DONE || (a->used == b->used && a->head.fields == b->head.fields &&
						a->head.framing == b->head.framing)))
		return;
	fail_msg("%s cut at %zu: %s, not %s", id, cut, http_reason_name(b->reason),
		http_reason_name(a->reason));
}

void
feed_all(struct feed *ret, const struct feed_side *side, const struct http_limits *limits,
	struct view input, const char *id)
{
	static struct feed other;
	size_t stride = input.n > 4096
				? 97
				: 1; /* the sizes of long inputs are not decided by every cut */

	feed_run(ret, side, limits, input, input.n, 1);
	for (size_t cut = 1; cut < input.n; cut += stride) {
		feed_run(&other, side, limits, input, cut, input.n);
		same(ret, &other, id, cut);
	}
	feed_run(&other, side, limits, input, 1, stride);
	same(ret, &other, id, 0);
}
