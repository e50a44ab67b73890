/* SPDX-License-Identifier: Apache-2.0 */
/* Response heads and bodies: rows I of the egress table. */
#include "feed.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

static struct feed feed;

struct row {
	const char *id;
	enum http_reason reason; /* HTTP_FINE: accepted */
	const char *input;
	size_t n;
};

#define BAD(id, reason, text)                                \
	{                                                    \
		id, HTTP_NO_##reason, text, sizeof(text) - 1 \
	}

static const struct row refused[] = {
	BAD("I1", STATUS_LINE, "<html>hello</html>\r\n\r\n"),
	BAD("I1", STATUS_LINE, "ICY 200 OK\r\n\r\n"),
	BAD("I1", STATUS_LINE, "HTTP/1.1 200OK\r\n\r\n"),
	BAD("I1", STATUS_LINE, "HTTP/1.1 099 x\r\n\r\n"),
	BAD("I1", STATUS_LINE, "HTTP/1.1 99 x\r\n\r\n"),
	BAD("I1", STATUS_LINE, "HTTP/1.1 1000 x\r\n\r\n"),
	BAD("I1", STATUS_LINE, "HTTP/1.1 600 x\r\n\r\n"),
	BAD("I1", STATUS_LINE, "HTTP/1.1 2xx x\r\n\r\n"),
	BAD("I1", STATUS_LINE, "HTTP/1.1  200 x\r\n\r\n"),
	BAD("I1", STATUS_LINE, "HTTP/1.1 200\r\n\r\n"),
	BAD("I1", STATUS_LINE, "HTTP/1.1 -20 x\r\n\r\n"),
	BAD("I1", STATUS_LINE, "HTTP/2.0 200 OK\r\n\r\n"),
	BAD("I1", STATUS_LINE, "http/1.1 200 OK\r\n\r\n"),
	BAD("I1", STATUS_LINE, "\r\nHTTP/1.1 200 OK\r\n\r\n"),
	BAD("I1", STATUS_LINE, "HTTP/1.1\r\n\r\n"),
	BAD("I3", SWITCH,
		"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"),
	BAD("I4", LENGTH_AND_CODING,
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"),
	BAD("I4", LENGTH, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n"),
	BAD("I4", LENGTH, "HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\n"),
	BAD("I4", CODING, "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
	BAD("I4", CODING, "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
	BAD("I4", CHUNK, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3 \r\nabc\r\n"),
	BAD("I4", CHUNK, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcXX"),
	BAD("I4", NO_CONTENT, "HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n"),
	BAD("I4", NO_CONTENT, "HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n"),
	BAD("I4", NO_CONTENT, "HTTP/1.1 304 Not\r\nTransfer-Encoding: chunked\r\n\r\n"),
	BAD("I4", NO_CONTENT, "HTTP/1.1 100 Go\r\nContent-Length: 5\r\n\r\n"),
	BAD("I9", BODY_LONG, "HTTP/1.1 200 OK\r\nContent-Length: 10737418240\r\n\r\n"),
	BAD("I9", BODY_LONG, "HTTP/1.1 200 OK\r\n\r\n0123456789012345678901234567890123456789"),
	BAD("I12", CONTROL, "HTTP/1.1 200 O\x07K\r\n\r\n"),
	BAD("I12", CONTROL, "HTTP/1.1 200 O\0K\r\n\r\n"),
	BAD("I12", FOLD, "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n"),
	BAD("I12", BARE_LF, "HTTP/1.1 200 OK\nX: a\n\n"),
	BAD("I12", BARE_LF, "HTTP/1.1 200 OK\r\nX: a\n\r\n"),
	BAD("I12", BARE_CR, "HTTP/1.1 200 OK\r\nX: a\rY: b\r\n\r\n"),
	BAD("I12", CONNECTION, "HTTP/1.1 200 OK\r\nConnection: a b\r\n\r\n"),
};

static void
limits_init(struct http_limits *limits)
{
	http_limits_init(limits);
	limits->body_bytes = 32;
}

static void
test_refused(void **state)
{
	const struct feed_side side = {.side = HTTP_RESPONSE, .asked = HTTP_GET};
	struct http_limits limits;

	(void)state;
	limits_init(&limits);
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		feed_all(&feed, &side, &limits, view_of(refused[i].input, refused[i].n),
			refused[i].id);
		if (feed.end != FEED_REFUSED || feed.reason != refused[i].reason)
			fail_msg("%s (row %zu): %s, not %s", refused[i].id, i,
				http_reason_name(feed.reason), http_reason_name(refused[i].reason));
		assert_int_equal(http_reason_status(feed.reason, HTTP_RESPONSE), 502);
	}
}

struct good {
	const char *input;
	enum http_method asked;
	bool switch_asked;
	enum http_framing framing;
	const char *body;
	bool keep_alive;
};

static const struct good accepted[] = {
	{"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", HTTP_GET, false, HTTP_BODY_LENGTH,
		"abc", true},
	{"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", HTTP_GET, false, HTTP_BODY_NONE, "", true},
	{"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", HTTP_HEAD, false, HTTP_BODY_NONE, "",
		true},
	{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_HEAD, false, HTTP_BODY_NONE,
		"", true},
	{"HTTP/1.1 304 Not\r\nContent-Length: 300\r\n\r\n", HTTP_GET, false, HTTP_BODY_NONE, "",
		true},
	{"HTTP/1.1 204 No\r\nContent-Length: 0\r\n\r\n", HTTP_GET, false, HTTP_BODY_NONE, "", true},
	{"HTTP/1.1 100 Continue\r\n\r\n", HTTP_POST, false, HTTP_BODY_NONE, "", true},
	{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: "
	 "Transfer-Encoding\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		HTTP_GET, false, HTTP_BODY_CHUNKED, "abc", true},
	{"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc", HTTP_GET, false, HTTP_BODY_UNTIL_CLOSE,
		"abc", false},
	{"HTTP/1.0 200 OK\r\n\r\nabc", HTTP_GET, false, HTTP_BODY_UNTIL_CLOSE, "abc", false},
	{"HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", HTTP_GET, true,
		HTTP_BODY_TUNNEL, "", false},
	{"HTTP/1.1 200 OK\r\n\r\n", HTTP_CONNECT, false, HTTP_BODY_TUNNEL, "", false},
	{"HTTP/1.1 404 \xe4\r\nHost: x y\r\nExpect: z\r\nX-HTTP-Method: q\r\nContent-Length: "
	 "1\r\n\r\na",
		HTTP_GET, false, HTTP_BODY_LENGTH, "a", true},
};

static void
test_accepted(void **state)
{
	struct http_limits limits;

	(void)state;
	limits_init(&limits);
	for (size_t i = 0; i < ARRAY_LEN(accepted); i++) {
		const struct good *g = &accepted[i];
		struct feed_side side = {HTTP_RESPONSE, g->asked, g->switch_asked};
		bool closes = g->framing == HTTP_BODY_UNTIL_CLOSE;

		feed_all(&feed, &side, &limits, view_str(g->input), "accepted");
		if (feed.end != (closes ? FEED_PENDING : FEED_DONE) ||
			feed.head.framing != g->framing)
			fail_msg("row %zu: %s", i, http_reason_name(feed.reason));
		assert_int_equal(feed.used, strlen(g->input));
		assert_int_equal(feed.head.keep_alive, g->keep_alive);
		assert_true(view_is(view_of(feed.body, feed.body_n), g->body));
	}
}

/* I7: header bombs. */
static void
test_bombs(void **state)
{
	const struct feed_side side = {.side = HTTP_RESPONSE, .asked = HTTP_GET};
	struct http_limits limits;
	auto_buf struct buf b;

	(void)state;
	buf_init(&b, 2 << 20);
	http_limits_init(&limits);
	for (unsigned kind = 0; kind < 3; kind++) {
		buf_clear(&b);
		buf_add_str(&b, "HTTP/1.1 200 ");
		buf_add_str(&b, kind == 0 ? "" : "OK\r\nX: ");
		for (unsigned i = 0; i < (kind == 0 ? 1u << 20 : 65536u) && kind < 2; i++)
			buf_add_byte(&b, 'a');
		for (unsigned i = 0; i < 10000 && kind == 2; i++)
			buf_add_str(&b, "\r\nX: y");
		assert_int_equal(buf_check(&b), 0);
		feed_run(&feed, &side, &limits, buf_view(&b), b.n, 1);
		assert_int_equal(feed.reason, kind == 2 ? HTTP_NO_FIELDS : HTTP_NO_HEAD_LONG);
		feed_run(&feed, &side, &limits, buf_view(&b), 7, 7000);
		assert_int_equal(feed.reason, kind == 2 ? HTTP_NO_FIELDS : HTTP_NO_HEAD_LONG);
		assert_string_equal(http_reason_code(feed.reason), "header-limit");
	}
}

/* I2: eight interim answers or 16 KiB of them, no more. */
static void
test_interim(void **state)
{
	struct http_interim count = {0}, bytes = {0};
	struct http_head *head = &feed.head;

	(void)state;
	memset(head, 0, sizeof(*head));
	head->status = 103;
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(http_interim_admit(&count, head, 25), HTTP_FINE);
	assert_int_equal(http_interim_admit(&count, head, 25), HTTP_NO_INTERIM);
	assert_int_equal(http_interim_admit(&bytes, head, 16384), HTTP_FINE);
	assert_int_equal(http_interim_admit(&bytes, head, 1), HTTP_NO_INTERIM);
	head->status = 200;
	assert_int_equal(http_interim_admit(&count, head, 32768), HTTP_FINE);
}

/* Only a body that ends by closing may end by closing. */
static void
test_close(void **state)
{
	struct http_body body;
	struct http_head *head = &feed.head;
	struct view in = view_str("abc"), data;

	(void)state;
	memset(head, 0, sizeof(*head));
	head->framing = HTTP_BODY_UNTIL_CLOSE;
	http_body_init(&body, head, 3);
	assert_int_equal(http_body_next(&body, &in, &data), HTTP_BODY_DATA);
	assert_int_equal(http_body_next(&body, &in, &data), HTTP_BODY_MORE);
	assert_int_equal(http_body_close(&body), HTTP_FINE);
	assert_int_equal(http_body_next(&body, &in, &data), HTTP_BODY_END);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_accepted),
		cmocka_unit_test(test_bombs),
		cmocka_unit_test(test_interim),
		cmocka_unit_test(test_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
