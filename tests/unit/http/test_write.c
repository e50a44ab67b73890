/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing: what is written is read back the same, and nothing illegal can be written. Event
 * streams too.
 */
#include "feed.h"
#include "lib/http/sse.h"
#include "lib/http/write.h"

#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

static struct feed feed;

static void
test_request(void **state)
{
	const struct feed_side side = {.side = HTTP_REQUEST};
	struct http_limits limits;
	struct http_write w;
	auto_buf struct buf b;
	unsigned n;

	(void)state;
	buf_init(&b, 4096);
	http_limits_init(&limits);
	http_write_request(&w, &b, HTTP_PUT, view_str("/v1/fs?path=%2Fa"));
	http_write_field(&w, "Host", view_str("demilune.test:7420"));
	http_write_field(&w, "X-Text", view_str("a\tb \xc3\xa4"));
	http_write_length(&w, 3);
	assert_int_equal(http_write_end(&w), 0);
	buf_add_str(&b, "abc");
	feed_all(&feed, &side, &limits, buf_view(&b), "request");
	assert_int_equal(feed.end, FEED_DONE);
	assert_int_equal(feed.used, b.n);
	assert_int_equal(feed.head.method, HTTP_PUT);
	assert_true(view_is(feed.head.target.path, "/v1/fs"));
	assert_true(view_is(http_head_field(&feed.head, "x-text", &n)->value, "a\tb \xc3\xa4"));
	assert_true(view_is(view_of(feed.body, feed.body_n), "abc"));
}

struct bad_field {
	const char *name, *value;
	size_t value_n;
};

#define FIELD(name, value)                     \
	{                                      \
		name, value, sizeof(value) - 1 \
	}

/* No value or name can make a second line, a second framing or a second host. */
static void
test_injection(void **state)
{
	static const struct bad_field bad[] = {
		FIELD("X", "a\r\nHost: evil.test"),
		FIELD("X", "a\nb"),
		FIELD("X", "a\rb"),
		FIELD("X", "a\0b"),
		FIELD("X", "a\x7f"),
		FIELD("X", "\x1b[31m"),
		FIELD("", "a"),
		FIELD("X Y", "a"),
		FIELD("X:", "a"),
		FIELD("X\r\nY", "a"),
		FIELD("\xc3\xa4", "a"),
		FIELD("Content-Length", "3"),
		FIELD("transfer-encoding", "chunked"),
		FIELD("host", "b.test"),
	};
	struct http_write w;
	auto_buf struct buf b;

	(void)state;
	buf_init(&b, 4096);
	buf_add_str(&b, "before");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		http_write_request(&w, &b, HTTP_GET, view_str("/"));
		http_write_field(&w, "Host", view_str("a.test"));
		http_write_field(&w, bad[i].name, view_of(bad[i].value, bad[i].value_n));
		assert_int_equal(http_write_end(&w), -EINVAL);
		assert_true(view_is(buf_view(&b), "before"));
	}
}

static int
request_to(struct buf *b, enum http_method method, const char *target, unsigned hosts,
	unsigned framings)
{
	struct http_write w;
	int r;

	http_write_request(&w, b, method, view_str(target));
	while (hosts-- > 0)
		http_write_field(&w, "Host", view_str("a.test"));
	while (framings-- > 0)
		http_write_chunked(&w);
	r = http_write_end(&w);
	buf_clear(b);
	return r;
}

static int
response_of(struct buf *b, unsigned status, unsigned lengths, unsigned chunked)
{
	struct http_write w;
	int r;

	http_write_response(&w, b, status);
	while (lengths-- > 0)
		http_write_length(&w, 0);
	while (chunked-- > 0)
		http_write_chunked(&w);
	r = http_write_end(&w);
	buf_clear(b);
	return r;
}

static void
test_rules(void **state)
{
	auto_buf struct buf b;

	(void)state;
	buf_init(&b, 4096);
	assert_int_equal(request_to(&b, HTTP_GET, "/", 1, 0), 0);
	assert_int_equal(request_to(&b, HTTP_POST, "/", 1, 1), 0);
	assert_int_equal(request_to(&b, HTTP_CONNECT, "a.test:443", 1, 0), 0);
	assert_int_equal(request_to(&b, HTTP_GET, "/", 0, 0), -EINVAL);
	assert_int_equal(request_to(&b, HTTP_GET, "/", 2, 0), -EINVAL);
	assert_int_equal(request_to(&b, HTTP_POST, "/", 1, 2), -EINVAL);
	assert_int_equal(request_to(&b, HTTP_GET, "/ HTTP/1.1\r\nX: y", 1, 0), -EINVAL);
	assert_int_equal(request_to(&b, HTTP_GET, "/a b", 1, 0), -EINVAL);
	assert_int_equal(request_to(&b, HTTP_GET, "", 1, 0), -EINVAL);
	assert_int_equal(request_to(&b, HTTP_GET, "/\xc3\xa4", 1, 0), -EINVAL);
	assert_int_equal(response_of(&b, 200, 1, 0), 0);
	assert_int_equal(response_of(&b, 200, 0, 1), 0);
	assert_int_equal(response_of(&b, 299, 0, 1), 0);
	assert_int_equal(response_of(&b, 204, 0, 0), 0);
	assert_int_equal(response_of(&b, 304, 0, 0), 0);
	assert_int_equal(response_of(&b, 101, 0, 0), 0);
	assert_int_equal(response_of(&b, 200, 0, 0), -EINVAL);
	assert_int_equal(response_of(&b, 200, 1, 1), -EINVAL);
	assert_int_equal(response_of(&b, 200, 2, 0), -EINVAL);
	assert_int_equal(response_of(&b, 204, 1, 0), -EINVAL);
	assert_int_equal(response_of(&b, 100, 0, 1), -EINVAL);
	assert_int_equal(response_of(&b, 99, 1, 0), -EINVAL);
	assert_int_equal(response_of(&b, 600, 1, 0), -EINVAL);
}

static void
test_answer(void **state)
{
	static const struct http_field extra = {
		{(const uint8_t *)"X-Id", 4}, {(const uint8_t *)"7", 1}};
	static const struct http_field evil = {
		{(const uint8_t *)"X", 1}, {(const uint8_t *)"\r\n", 2}};
	struct http_answer a = {.status = 404,
		.type = "application/json",
		.body = {(const uint8_t *)"{}", 2},
		.close = true,
		.field = &extra,
		.fields = 1};
	auto_buf struct buf b;

	(void)state;
	buf_init(&b, 4096);
	assert_int_equal(http_write_answer(&b, &a), 0);
	assert_true(view_is(buf_view(&b),
		"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nX-Id: 7\r\n"
		"Connection: close\r\nContent-Length: 2\r\n\r\n{}"));
	buf_clear(&b);
	a.head_only = true;
	assert_int_equal(http_write_answer(&b, &a), 0);
	assert_true(b.n > 4 && memcmp(b.p + b.n - 4, "\r\n\r\n", 4) == 0);
	buf_clear(&b);
	a.field = &evil;
	assert_int_equal(http_write_answer(&b, &a), -EINVAL);
	assert_int_equal(b.n, 0);
	a = (struct http_answer){.status = 204};
	assert_int_equal(http_write_answer(&b, &a), 0);
	assert_true(view_is(buf_view(&b), "HTTP/1.1 204 No Content\r\n\r\n"));
	buf_clear(&b);
	a.body = view_str("x");
	assert_int_equal(http_write_answer(&b, &a), -EINVAL);
}

/* A full buffer leaves no half of anything. */
/* For programs of HTTP/1.0: the end of the connection is that of the body, and it is said. Never in a request, never beside a length. */
static void
test_until_close(void **state)
{
	struct http_write w;
	auto_buf struct buf b;

	(void)state;
	buf_init(&b, 4096);
	http_write_response(&w, &b, 200);
	http_write_until_close(&w);
	assert_int_equal(http_write_end(&w), 0);
	assert_true(view_is(buf_view(&b), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"));
	buf_clear(&b);
	http_write_response(&w, &b, 200);
	http_write_until_close(&w);
	http_write_length(&w, 1);
	assert_int_equal(http_write_end(&w), -EINVAL);
	http_write_request(&w, &b, HTTP_GET, view_str("/"));
	http_write_field(&w, "Host", view_str("a.test"));
	http_write_until_close(&w);
	assert_int_equal(http_write_end(&w), -EINVAL);
	assert_int_equal(b.n, 0);
}

static void
test_full(void **state)
{
	struct http_answer a = {
		.status = 200, .type = "text/plain", .body = {(const uint8_t *)"hello", 5}};
	size_t whole;
	auto_buf struct buf b;

	(void)state;
	buf_init(&b, 4096);
	assert_int_equal(http_write_answer(&b, &a), 0);
	whole = b.n;
	for (size_t max = 0; max < whole; max++) {
		auto_buf struct buf small;

		buf_init(&small, max);
		assert_int_equal(http_write_answer(&small, &a), -ENOBUFS);
		assert_int_equal(small.n, 0);
	}
}

static void
test_sse(void **state)
{
	static const char *const bad[] = {"a\nb", "a\rb", "a\tb", "\xc3\xa4", "\x7f", "\x1b"};
	static const char *const names[] = {"", "a b", "a\nb", "A", "a:"};
	auto_buf struct buf b, small;

	(void)state;
	buf_init(&b, 4096);
	buf_init(&small, 8);
	assert_int_equal(sse_frame(&b, "exit", view_str("{\"exit_code\":0}")), 0);
	assert_int_equal(sse_frame(&b, NULL, view_str("")), 0);
	assert_int_equal(sse_comment(&b, view_str("hb")), 0);
	assert_true(view_is(
		buf_view(&b), "event: exit\ndata: {\"exit_code\":0}\n\ndata: \n\n: hb\n\n"));
	buf_clear(&b);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(sse_frame(&b, "stdout", view_str(bad[i])), -EINVAL);
		assert_int_equal(sse_comment(&b, view_str(bad[i])), -EINVAL);
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_int_equal(sse_frame(&b, names[i], view_str("x")), -EINVAL);
	assert_int_equal(sse_frame(&b, "stdout", view_of("a\0", 2)), -EINVAL);
	assert_int_equal(b.n, 0);
	assert_int_equal(sse_frame(&small, "stdout", view_str("x")), -ENOBUFS);
	assert_int_equal(small.n, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request),
		cmocka_unit_test(test_injection),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_answer),
		cmocka_unit_test(test_until_close),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_sse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
