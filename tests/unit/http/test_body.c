/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies: the chunk rows of the egress table (E11 to E17), sizes, and the writer of chunks. */
#include "feed.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

static const struct feed_side request = {.side = HTTP_REQUEST};
static struct feed feed;

#define HEAD_ "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n"
#define END_  "0\r\n\r\n"
#define HEX16 "0000000000000003"
#define X60   "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

struct row {
	const char *id;
	enum http_reason reason; /* HTTP_FINE: accepted */
	const char *body;        /* behind HEAD_ */
	size_t n;
	const char *data;
};

#define BAD(id, reason, text)                                    \
	{                                                        \
		id, HTTP_NO_##reason, text, sizeof(text) - 1, "" \
	}
#define OK(id, text, data)                                  \
	{                                                   \
		id, HTTP_FINE, text, sizeof(text) - 1, data \
	}

static const struct row rows[] = {
	BAD("E11", CHUNK, "0x3\r\nabc\r\n" END_),
	BAD("E11", CHUNK, "+3\r\nabc\r\n" END_),
	BAD("E11", CHUNK, "-3\r\nabc\r\n" END_),
	BAD("E11", CHUNK, "3_0\r\nabc\r\n" END_),
	BAD("E11", CHUNK, "3 \r\nabc\r\n" END_),
	BAD("E11", CHUNK, " 3\r\nabc\r\n" END_),
	BAD("E11", CHUNK, "3\t\r\nabc\r\n" END_),
	BAD("E11", CHUNK, "0" HEX16 "\r\nabc\r\n" END_),
	BAD("E11", CHUNK, "\r\nabc\r\n" END_),
	BAD("E11", CHUNK, ";x\r\nabc\r\n" END_),
	BAD("E11", CHUNK, "g\r\nabc\r\n" END_),
	BAD("E11", CHUNK, "3\0\r\nabc\r\n" END_),
	BAD("E11", BODY_LONG, "FFFFFFFFFFFFFFFF\r\nabc\r\n" END_),
	BAD("E11", BODY_LONG, "3\r\nabc\r\nFFFFFFFFFFFFFFFE\r\n" END_),
	OK("E11", HEX16 "\r\nabc\r\n" END_, "abc"),
	OK("E11", "00A\r\n0123456789\r\nb\r\n0123456789a\r\n000\r\n\r\n", "01234567890123456789a"),
	BAD("E12", CHUNK, "3\r\nabcXX0\r\n\r\n"),
	BAD("E12", CHUNK, "3\r\nabc\rX0\r\n\r\n"),
	BAD("E12", CHUNK, "3\r\nabc0\r\n\r\n"),
	BAD("E12", CHUNK, "3\r\nabcd\r\n" END_),
	BAD("E12", CHUNK, "3\r\nabc\n" END_),
	BAD("E13", CHUNK, "3\nabc\r\n" END_),
	BAD("E13", CHUNK, "3;x\nabc\r\n" END_),
	BAD("E13", CHUNK, "3;a\nb\r\nabc\r\n" END_),
	BAD("E13", CHUNK, "3;\n\r\nabc\r\n" END_),
	BAD("E13", CHUNK, "3\r\r\nabc\r\n" END_),
	BAD("E13", TRAILER, "0\r\n\n"),
	BAD("E13", TRAILER, "0\r\nX: y\n\r\n"),
	BAD("E13", CHUNK, "0\n\r\n"),
	OK("E14", "3;x\r\nabc\r\n0;y=z;w\r\n\r\n", "abc"),
	OK("E14", "3;a" X60 "xx\r\nabc\r\n" END_, "abc"),
	BAD("E14", CHUNK, "3;a" X60 "xxx\r\nabc\r\n" END_),
	BAD("E14", CHUNK, "3;x=\"y\"\r\nabc\r\n" END_),
	BAD("E14", CHUNK, "3; x\r\nabc\r\n" END_),
	BAD("E14", CHUNK, "3;x =y\r\nabc\r\n" END_),
	BAD("E14", CHUNK, "3;\r\nabc\r\n" END_),
	BAD("E14", CHUNK, "3;x=\r\nabc\r\n" END_),
	BAD("E14", CHUNK, "3;=y\r\nabc\r\n" END_),
	BAD("E14", CHUNK, "3;x=y=z\r\nabc\r\n" END_),
	BAD("E14", CHUNK, "3;x;;y\r\nabc\r\n" END_),
	BAD("E14", CHUNK, "3;x\xff\r\nabc\r\n" END_),
	OK("E16",
		"3\r\nabc\r\n0\r\nHost: evil.test\r\nContent-Length: 9\r\nAuthorization: x\r\n\r\n",
		"abc"),
	OK("E16", "0\r\nEmpty:\r\n\r\n", ""),
	BAD("E16", TRAILER, "0\r\nno colon\r\n\r\n"),
	BAD("E16", TRAILER, "0\r\nX : y\r\n\r\n"),
	BAD("E16", TRAILER, "0\r\n: y\r\n\r\n"),
	BAD("E16", TRAILER, "0\r\n X: y\r\n\r\n"),
	BAD("E16", TRAILER, "0\r\nX: y\r\n z\r\n\r\n"),
	BAD("E16", TRAILER, "0\r\nX: a\0b\r\n\r\n"),
	BAD("E16", TRAILER, "0\r\nX: a\rb\r\n\r\n"),
	BAD("E16", TRAILER, "0\r\nX\r\n\r\n"),
	BAD("E16", TRAILER, "0\r\n\rX"),
	BAD("K11", BODY_LONG, "1001\r\n"),
	BAD("K11", BODY_LONG, "fff\r\n"),
};

static void
limits_init(struct http_limits *limits)
{
	http_limits_init(limits);
	limits->body_bytes = 64;
}

static void
test_chunks(void **state)
{
	struct http_limits limits;
	auto_buf struct buf b;

	(void)state;
	buf_init(&b, 8192);
	limits_init(&limits);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];

		buf_clear(&b);
		buf_add_str(&b, HEAD_);
		buf_add(&b, row->body, row->n);
		feed_all(&feed, &request, &limits, buf_view(&b), row->id);
		if (feed.reason != row->reason)
			fail_msg("%s (row %zu): %s, not %s", row->id, i,
				http_reason_name(feed.reason), http_reason_name(row->reason));
		assert_int_equal(feed.end, row->reason == HTTP_FINE ? FEED_DONE : FEED_REFUSED);
		if (row->reason != HTTP_FINE)
			continue;
		assert_int_equal(feed.used, b.n);
		assert_true(view_is(view_of(feed.body, feed.body_n), row->data));
		assert_int_equal(feed.body_odd, strcmp(row->id, "E11") != 0);
	}
}

/* Every byte in every place of a chunk line that is not legal there is refused. */
static void
test_every_byte(void **state)
{
	static const char line[] = "3;x=y\r\nabc\r\n0\r\nT: v\r\n\r\n";
	struct http_limits limits;
	unsigned accepted = 0;
	auto_buf struct buf b;

	(void)state;
	buf_init(&b, 8192);
	limits_init(&limits);
	for (size_t at = 0; at < sizeof(line) - 1; at++)
		for (unsigned c = 0; c < 256; c++) {
			buf_clear(&b);
			buf_add_str(&b, HEAD_);
			buf_add_str(&b, line);
			b.p[sizeof(HEAD_) - 1 + at] = (uint8_t)c;
			feed_run(&feed, &request, &limits, buf_view(&b), b.n, 1);
			if (c == '\n' && line[at] != '\n' && (at < 7 || at > 9))
				assert_int_not_equal(feed.end, FEED_DONE);
			if (line[at] == '\r' && c != '\r' && at != 5 && at != 19)
				assert_int_not_equal(feed.end, FEED_DONE);
			accepted += feed.end == FEED_DONE;
		}
	/* data: 3 x 256; one size digit; extension and trailer bytes: the legal ones */
	assert_in_range(accepted, 3 * 256, 3 * 256 + 1100);
}

/* E17: an end inside of the body is never a clean one. */
static void
test_truncated(void **state)
{
	static const char *const whole[] = {
		HEAD_ "3\r\nabc\r\n0\r\nX: y\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\nabc",
	};
	struct http_limits limits;

	(void)state;
	limits_init(&limits);
	for (size_t i = 0; i < ARRAY_LEN(whole); i++) {
		size_t n = strlen(whole[i]),
		       head = (size_t)(strstr(whole[i], "\r\n\r\n") + 4 - whole[i]);
		struct http_body body;
		struct view in, data;

		feed_run(&feed, &request, &limits, view_of(whole[i], n), n, 1);
		for (size_t cut = head; cut <= n; cut++) {
			enum http_body_event e;

			http_body_init(&body, &feed.head, 64);
			in = view_of(whole[i] + head, cut - head);
			do {
				e = http_body_next(&body, &in, &data);
			} while (e == HTTP_BODY_DATA);
			assert_int_equal(e, cut == n ? HTTP_BODY_END : HTTP_BODY_MORE);
			assert_int_equal(
				http_body_close(&body), cut == n ? HTTP_FINE : HTTP_NO_TRUNCATED);
			if (cut < n) {
				in = view_of(whole[i] + cut, n - cut);
				assert_int_equal(
					http_body_next(&body, &in, &data), HTTP_BODY_REFUSED);
			}
		}
	}
}

static void
many(struct buf *b, const char *text, unsigned times)
{
	while (times-- > 0)
		buf_add_str(b, text);
}

/* E14, E16: sums over a whole body, at the edge and one above it. */
static void
test_sums(void **state)
{
	struct http_limits limits;
	auto_buf struct buf b;

	(void)state;
	buf_init(&b, 1 << 17);
	http_limits_init(&limits);
	for (unsigned extra = 0; extra < 2; extra++) {
		buf_clear(&b);
		buf_add_str(&b, HEAD_);
		many(&b, "1;a" X60 "xx\r\na\r\n", 64); /* 64 times 64 bytes */
		many(&b, "1;a\r\nb\r\n", extra);
		buf_add_str(&b, END_);
		feed_all(&feed, &request, &limits, buf_view(&b), "E14 sum");
		assert_int_equal(feed.reason, extra == 0 ? HTTP_FINE : HTTP_NO_CHUNK);

		buf_clear(&b);
		buf_add_str(&b, HEAD_ "0\r\n");
		many(&b, "T:0123456789abc\r\n", 256); /* 256 times 16 bytes, LF is not counted */
		many(&b, "T:\r\n", extra);
		buf_add_str(&b, "\r\n");
		feed_all(&feed, &request, &limits, buf_view(&b), "E16 sum");
		assert_int_equal(feed.reason, extra == 0 ? HTTP_FINE : HTTP_NO_TRAILER);
	}
}

/* What the writer makes the reader takes. */
static void
test_writer(void **state)
{
	struct http_limits limits;
	char head[HTTP_CHUNK_HEAD];
	auto_buf struct buf b;

	(void)state;
	buf_init(&b, 8192);
	http_limits_init(&limits);
	buf_add_str(&b, HEAD_);
	http_chunk_add(&b, view_str("hello "));
	http_chunk_add(&b, view_str(""));
	http_chunk_add(&b, view_str("0123456789abcdefg"));
	http_chunk_end(&b);
	feed_all(&feed, &request, &limits, buf_view(&b), "writer");
	assert_int_equal(feed.end, FEED_DONE);
	assert_int_equal(feed.used, b.n);
	assert_false(feed.body_odd);
	assert_true(view_is(view_of(feed.body, feed.body_n), "hello 0123456789abcdefg"));
	assert_true(
		view_is(view_of(head, http_chunk_head(SIZE_MAX, head)), "ffffffffffffffff\r\n"));
	assert_true(view_is(view_of(head, http_chunk_head(16, head)), "10\r\n"));
	assert_true(view_is(view_of(head, http_chunk_head(15, head)), "f\r\n"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chunks),
		cmocka_unit_test(test_every_byte),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_writer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
