/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Request heads. Each row carries the id of the egress table it stands for (E, A, F, G, H), and is
 * read whole, at every cut and byte by byte.
 */
#include "feed.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

static const struct feed_side request = {.side = HTTP_REQUEST};

struct row {
	const char *id;
	enum http_reason reason;
	unsigned status;
	const char *input;
	size_t n;
};

#define ROW(id, reason, status, text)                                \
	{                                                            \
		id, HTTP_NO_##reason, status, text, sizeof(text) - 1 \
	}
#define GET_(fields)        "GET / HTTP/1.1\r\nHost: a.test\r\n" fields "\r\n"
#define POST_(fields, body) "POST / HTTP/1.1\r\nHost: a.test\r\n" fields "\r\n" body
#define TO(target)          "GET " target " HTTP/1.1\r\nHost: plain.test\r\n\r\n"

static const struct row refused[] = {
	ROW("E1", LENGTH_AND_CODING, 400,
		POST_("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "abc")),
	ROW("E1", LENGTH_AND_CODING, 400,
		POST_("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "abc")),
	ROW("E1", LENGTH_AND_CODING, 400,
		POST_("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", "")),
	ROW("E2", LENGTH, 400, POST_("Content-Length: 3\r\nContent-Length: 3\r\n", "abc")),
	ROW("E2", LENGTH, 400, POST_("Content-Length: 3\r\nX: y\r\ncontent-length: 4\r\n", "abcd")),
	ROW("E2", LENGTH, 400, POST_("Content-Length: 3, 3\r\n", "abc")),
	ROW("E3", LENGTH, 400, POST_("Content-Length: +3\r\n", "abc")),
	ROW("E3", LENGTH, 400, POST_("Content-Length: -3\r\n", "abc")),
	ROW("E3", LENGTH, 400, POST_("Content-Length: 0x3\r\n", "abc")),
	ROW("E3", LENGTH, 400, POST_("Content-Length: 3 4\r\n", "abc")),
	ROW("E3", LENGTH, 400, POST_("Content-Length:\r\n", "abc")),
	ROW("E3", LENGTH, 400, POST_("Content-Length: 3_0\r\n", "abc")),
	ROW("E3", LENGTH, 400, POST_("Content-Length: 18446744073709551616\r\n", "abc")),
	ROW("E3", LENGTH, 400, POST_("Content-Length: 99999999999999999999\r\n", "abc")),
	ROW("E3", LENGTH, 400, POST_("Content-Length: 0003\r\n", "abc")),
	ROW("E3", LENGTH, 400, POST_("Content-Length: 3.0\r\n", "abc")),
	ROW("E3", LENGTH, 400, POST_("Content-Length: \xb2\r\n", "abc")),
	ROW("E4", FIELD_NAME, 400, POST_("Content-Length : 3\r\n", "abc")),
	ROW("E4", FIELD_NAME, 400, POST_("Content-Length\t: 3\r\n", "abc")),
	ROW("E4", FIELD_NAME, 400, POST_("Transfer-Encoding : chunked\r\n", "")),
	ROW("E6", FOLD, 400, POST_("Transfer-Encoding:\r\n chunked\r\n", "")),
	ROW("E6", FOLD, 400, GET_("X: a\r\n b\r\n")),
	ROW("E6", FOLD, 400, GET_("X: a\r\n\tb\r\n")),
	ROW("E6", FOLD, 400, GET_("X: a\r\n \r\n")),
	ROW("E6", CODING, 400, POST_("Transfer-Encoding: xchunked\r\n", "")),
	ROW("E6", CODING, 400, POST_("Transfer-Encoding: chunked, chunked\r\n", "")),
	ROW("E6", CODING, 400,
		POST_("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "")),
	ROW("E6", CODING, 400, POST_("Transfer-Encoding: gzip, chunked\r\n", "")),
	ROW("E6", CODING, 400, POST_("Transfer-Encoding: chunked, identity\r\n", "")),
	ROW("E6", CODING, 400, POST_("Transfer-Encoding: identity\r\n", "")),
	ROW("E6", CODING, 400, POST_("Transfer-Encoding: \"chunked\"\r\n", "")),
	ROW("E6", CODING, 400, POST_("Transfer-Encoding: chunked;x=1\r\n", "")),
	ROW("E6", CODING, 400, POST_("Transfer-Encoding:\r\n", "")),
	ROW("E6", CODING, 400, POST_("Transfer-EncodingX: chunked\r\n", "")),
	ROW("E7", CODING, 400,
		"POST / HTTP/1.0\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
	ROW("E8", BARE_LF, 400, "GET / HTTP/1.1\nHost: a.test\n\n"),
	ROW("E8", BARE_LF, 400, "GET / HTTP/1.1\r\nHost: a.test\r\n\n"),
	ROW("E8", BARE_LF, 400, "GET / HTTP/1.1\r\nHost: a.test\nX: y\r\n\r\n"),
	ROW("E8", BARE_LF, 400, "\nGET / HTTP/1.1\r\nHost: a.test\r\n\r\n"),
	ROW("E8", BARE_CR, 400, GET_("X: a\rb\r\n")),
	ROW("E8", BARE_CR, 400, "GET / HTTP/1.1\r\nHost: a.test\r\n\rX"),
	ROW("E8", BARE_CR, 400, "GET / HTTP/1.1\r\r\nHost: a.test\r\n\r\n"),
	ROW("E8", BARE_CR, 400, "\r\rGET / HTTP/1.1\r\nHost: a.test\r\n\r\n"),
	ROW("E9", FOLD, 400, "GET / HTTP/1.1\r\n Host: a.test\r\n\r\n"),
	ROW("E9", FOLD, 400, "GET / HTTP/1.1\r\n\tX: y\r\nHost: a.test\r\n\r\n"),
	ROW("E18", CONTROL, 400, GET_("X: a\0b\r\n")),
	ROW("E18", CONTROL, 400, GET_("X: a\x01\r\n")),
	ROW("E18", CONTROL, 400, GET_("X: a\x0b\r\n")),
	ROW("E18", CONTROL, 400, GET_("X: a\x1f\r\n")),
	ROW("E18", CONTROL, 400, GET_("X: a\x7f\r\n")),
	ROW("E18", CONTROL, 400, GET_("X\0Y: a\r\n")),
	ROW("E18", CONTROL, 400, GET_("X\x7f: a\r\n")),
	ROW("E18", FIELD_NAME, 400, GET_("X\xc3\xa4: a\r\n")),
	ROW("E18", FIELD_NAME, 400, GET_(": a\r\n")),
	ROW("E18", FIELD_NAME, 400, GET_("no colon\r\n")),
	ROW("E18", FIELD_NAME, 400, GET_("nocolon\r\n")),
	ROW("E18", FIELD_NAME, 400, GET_("X(Y: a\r\n")),
	ROW("E19", REQUEST_LINE, 400, "GET  / HTTP/1.1\r\nHost: a.test\r\n\r\n"),
	ROW("E19", REQUEST_LINE, 400, "GET /  HTTP/1.1\r\nHost: a.test\r\n\r\n"),
	ROW("E19", REQUEST_LINE, 400, "GET / HTTP/1.1 \r\nHost: a.test\r\n\r\n"),
	ROW("E19", REQUEST_LINE, 400, " GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"),
	ROW("E19", REQUEST_LINE, 400, "GET\t/\tHTTP/1.1\r\nHost: a.test\r\n\r\n"),
	ROW("E19", REQUEST_LINE, 400, "GET /a b HTTP/1.1\r\nHost: a.test\r\n\r\n"),
	ROW("E19", REQUEST_LINE, 400, "GET / http/1.1\r\nHost: a.test\r\n\r\n"),
	ROW("E19", REQUEST_LINE, 400, "GET / HTTP/1.01\r\nHost: a.test\r\n\r\n"),
	ROW("E19", REQUEST_LINE, 400, "GET / HTTP/1\r\nHost: a.test\r\n\r\n"),
	ROW("E19", REQUEST_LINE, 400, "GET / HTTPS/1.1\r\nHost: a.test\r\n\r\n"),
	ROW("E19", VERSION, 505, "GET / HTTP/9.9\r\nHost: a.test\r\n\r\n"),
	ROW("E19", VERSION, 505, "GET / HTTP/2.0\r\nHost: a.test\r\n\r\n"),
	ROW("E19", VERSION, 505, "GET / HTTP/1.2\r\nHost: a.test\r\n\r\n"),
	ROW("E19", VERSION, 505, "GET / HTTP/0.9\r\nHost: a.test\r\n\r\n"),
	ROW("E19", REQUEST_LINE, 400, "GET /\r\n"),
	ROW("E19", REQUEST_LINE, 400, "GET\r\n"),
	ROW("E19", REQUEST_LINE, 400, "get / HTTP/1.1\r\nHost: a.test\r\n\r\n"),
	ROW("E19", REQUEST_LINE, 400, "GE\x80T / HTTP/1.1\r\nHost: a.test\r\n\r\n"),
	ROW("E19", METHOD, 501, "BREW / HTTP/1.1\r\nHost: a.test\r\n\r\n"),
	ROW("K8", METHOD, 501, "TRACE / HTTP/1.1\r\nHost: a.test\r\n\r\n"),
	ROW("H6", VERSION, 505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
	ROW("G11", CONTROL, 400, "\x16\x03\x01\x02\x00"),
	ROW("G23", REQUEST_LINE, 400,
		"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nGET / HTTP/1.1\r\n\r\n"),
	ROW("E21", METHOD_BODY, 400,
		"GET / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello"),
	ROW("E21", METHOD_BODY, 400,
		"HEAD / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello"),
	ROW("E21", METHOD_BODY, 400,
		"DELETE / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello"),
	ROW("E21", METHOD_BODY, 400,
		"GET / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
	ROW("E23", EXPECT, 417, POST_("Expect: 100-continue, x\r\nContent-Length: 1\r\n", "a")),
	ROW("E23", EXPECT, 417, POST_("Expect: x\r\n", "")),
	ROW("E23", EXPECT, 417, POST_("Expect:\r\n", "")),
	ROW("E23", EXPECT, 417, POST_("Expect: y 100-continue\r\n", "")),
	ROW("E23", EXPECT, 417, POST_("Expect: 100-continue\r\nExpect: 100-continue\r\n", "")),
	ROW("E24", CONNECTION, 400, GET_("Connection: Host\r\n")),
	ROW("E24", CONNECTION, 400,
		GET_("Connection: Authorization, X-Forwarded-For, content-length\r\n")),
	ROW("E24", CONNECTION, 400, GET_("Connection: keep-alive, X-Forwarded-For\r\n")),
	ROW("E24", CONNECTION, 400, GET_("Connection: close\r\nConnection: transfer-encoding\r\n")),
	ROW("E24", CONNECTION, 400, GET_("Connection: cookie\r\n")),
	ROW("E24", CONNECTION, 400, GET_("Connection: close,\r\n")),
	ROW("E24", CONNECTION, 400, GET_("Connection: ,close\r\n")),
	ROW("E24", CONNECTION, 400, GET_("Connection: close;x\r\n")),
	ROW("E24", CONNECTION, 400, GET_("Connection: close close\r\n")),
	ROW("E24", CONNECTION, 400, GET_("Connection:\r\n")),
	ROW("E29", METHOD_OVERRIDE, 403, POST_("X-HTTP-Method-Override: DELETE\r\n", "")),
	ROW("E29", METHOD_OVERRIDE, 403, POST_("x-http-method: DELETE\r\n", "")),
	ROW("E29", METHOD_OVERRIDE, 403, POST_("X-Method-Override: DELETE\r\n", "")),
	ROW("E31", LEADING, 400, "\r\n\r\nGET / HTTP/1.1\r\nHost: a.test\r\n\r\n"),
	ROW("E31", LEADING, 400, "\r\n\r\n"),
	ROW("K11", BODY_LONG, 413, POST_("Content-Length: 8193\r\n", "")),
	ROW("E-host", HOST, 400, "GET / HTTP/1.1\r\n\r\n"),
	ROW("E-host", HOST, 400, "GET / HTTP/1.1\r\nHost: a.test\r\nHost: a.test\r\n\r\n"),
	ROW("E-host", HOST, 400, "GET / HTTP/1.1\r\nHost: a.test\r\nhOST: b.test\r\n\r\n"),
	ROW("E-host", HOST, 400, "GET / HTTP/1.1\r\nHost:\r\n\r\n"),
	ROW("E-host", HOST, 400, "GET / HTTP/1.0\r\nHost: a.test\r\nHost: a.test\r\n\r\n"),
	ROW("A14", HOST_SYNTAX, 400, "GET / HTTP/1.1\r\nHost: a test\r\n\r\n"),
	ROW("A24", PORT, 400, "GET / HTTP/1.1\r\nHost: a.test: 80\r\n\r\n"),
	ROW("A1", URL, 400, TO("http://plain.test@evil.test/")),
	ROW("A2", URL, 400, TO("http://evil.test#@plain.test/")),
	ROW("A3", URL, 400, TO("http://evil.test\\@plain.test/")),
	ROW("A6", URL, 400, TO("http:///evil.test/")),
	ROW("A11", MISMATCH, 421, TO("http://evil.test?@plain.test/")),
	ROW("A13", CONTROL, 400, TO("http://evil.test\0.plain.test/")),
	ROW("A14", CONTROL, 400, TO("http://evil\x7f.test/")),
	ROW("A17", HOST_IDN, 400, TO("http://b\xc3\xbc\x63her.test/")),
	ROW("A31", URL, 400, TO("allowed.test:443")),
	ROW("A31", URL, 400, TO("*")),
	ROW("G4", MISMATCH, 421, TO("https://evil.test/")),
	ROW("G4", MISMATCH, 421, TO("https://plain.test:80/")),
	ROW("G24", MISMATCH, 421,
		"GET http://plain.test/ HTTP/1.1\r\nHost: plain.test:8443\r\n\r\n"),
	ROW("G3", MISMATCH, 421, "CONNECT plain.test:443 HTTP/1.1\r\nHost: evil.test\r\n\r\n"),
	ROW("G13", PORT, 400, "CONNECT plain.test HTTP/1.1\r\nHost: plain.test\r\n\r\n"),
	ROW("G13", PORT, 400, "CONNECT plain.test:443/path HTTP/1.1\r\nHost: plain.test\r\n\r\n"),
	ROW("G13", PORT, 400, "CONNECT plain.test:0 HTTP/1.1\r\nHost: plain.test\r\n\r\n"),
	ROW("G14", IP_LITERAL, 403, "CONNECT 1.2.3.4:443 HTTP/1.1\r\nHost: plain.test\r\n\r\n"),
	ROW("F6", PATH, 400, TO("/v1/\xc3\xa4")),
	ROW("F6", PATH, 400, TO("/v1/#x")),
	ROW("F2", PATH, 400, TO("/v1\\x")),
	ROW("F7", PATH, 400, TO("/v1/%zz")),
	ROW("F7", QUERY, 400, TO("/v1/?a=%zz")),
};

static struct feed feed;

static void
limits_small(struct http_limits *limits)
{
	http_limits_init(limits);
	limits->body_bytes = 8192;
}

static void
test_refused(void **state)
{
	struct http_limits limits;

	(void)state;
	limits_small(&limits);
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		const struct row *row = &refused[i];

		feed_all(&feed, &request, &limits, view_of(row->input, row->n), row->id);
		if (feed.end != FEED_REFUSED || feed.reason != row->reason)
			fail_msg("%s (row %zu): %s, not %s", row->id, i,
				http_reason_name(feed.reason), http_reason_name(row->reason));
		assert_int_equal(http_reason_status(feed.reason, HTTP_REQUEST), row->status);
	}
}

struct good {
	const char *id, *input, *body;
	enum http_framing framing;
	bool keep_alive, expect, odd;
};

static const struct good accepted[] = {
	{"plain", GET_(""), "", HTTP_BODY_NONE, true, false, false},
	{"E31", "\r\n" GET_(""), "", HTTP_BODY_NONE, true, false, true},
	{"E22", POST_("Expect: 100-Continue\r\nContent-Length: 2\r\n", "ab"), "ab",
		HTTP_BODY_LENGTH, true, true, false},
	{"E21", "DELETE / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n", "",
		HTTP_BODY_NONE, true, false, false},
	{"ts-empty-post",
		POST_("content-length: 0\r\ncontent-type: text/plain;charset=UTF-8\r\n", ""), "",
		HTTP_BODY_NONE, true, false, false},
	{"no-length", POST_("", ""), "", HTTP_BODY_NONE, true, false, false},
	{"chunked", POST_("Transfer-Encoding: Chunked\r\n", "3\r\nabc\r\n0\r\n\r\n"), "abc",
		HTTP_BODY_CHUNKED, true, false, false},
	{"tab", GET_("X:\t a\tb \t\r\n"), "", HTTP_BODY_NONE, true, false, false},
	{"8bit", GET_("X: \xc3\xa4\r\n"), "", HTTP_BODY_NONE, true, false, false},
	{"E24", GET_("Connection: Keep-Alive , Upgrade\r\nUpgrade: x\r\n"), "", HTTP_BODY_NONE,
		true, false, false},
	{"close", GET_("Connection: close\r\n"), "", HTTP_BODY_NONE, false, false, false},
	{"proxy-close", GET_("Proxy-Connection: close\r\n"), "", HTTP_BODY_NONE, false, false,
		false},
	{"1.0", "GET / HTTP/1.0\r\n\r\n", "", HTTP_BODY_NONE, false, false, false},
	{"1.0-ka", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "", HTTP_BODY_NONE, true,
		false, false},
	{"1.0-expect", "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na", "a",
		HTTP_BODY_LENGTH, false, false, false},
	{"absolute", "GET http://A.test:80/x HTTP/1.1\r\nHost: a.test\r\n\r\n", "", HTTP_BODY_NONE,
		true, false, false},
	{"A21", "GET http://a.test./ HTTP/1.1\r\nHost: a.test\r\n\r\n", "", HTTP_BODY_NONE, true,
		false, false},
	{"A27", "GET https://a.test/ HTTP/1.1\r\nHost: a.test:443\r\n\r\n", "", HTTP_BODY_NONE,
		true, false, false},
	{"A28", "GET HTTP://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", "", HTTP_BODY_NONE, true,
		false, false},
	{"A31", "OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n", "", HTTP_BODY_NONE, true, false,
		false},
	{"A7", "GET //evil.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", "", HTTP_BODY_NONE, true, false,
		false},
	{"G1", "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n", "", HTTP_BODY_NONE, true,
		false, false},
};

static void
test_accepted(void **state)
{
	struct http_limits limits;

	(void)state;
	limits_small(&limits);
	for (size_t i = 0; i < ARRAY_LEN(accepted); i++) {
		const struct good *row = &accepted[i];
		struct view input = view_str(row->input);

		feed_all(&feed, &request, &limits, input, row->id);
		if (feed.end != FEED_DONE)
			fail_msg("%s: %s", row->id, http_reason_name(feed.reason));
		assert_int_equal(feed.used, input.n);
		assert_int_equal(feed.head.framing, row->framing);
		assert_true(view_is(view_of(feed.body, feed.body_n), row->body));
		if (feed.head.keep_alive != row->keep_alive ||
			feed.head.expect_continue != row->expect || feed.head.odd != row->odd)
			fail_msg("%s: keep_alive, expect_continue or odd", row->id);
	}
}

/* Views, trimmed values, repeated fields, lists. */
static void
test_fields(void **state)
{
	static const char input[] =
		"PUT /v1/fs?path=%2Fa+b HTTP/1.1\r\nHost: API.test:7420\r\nAccept:  */* \t\r\n"
		"X-A: 1\r\nEmpty:\r\nx-a: 2\r\nContent-Length: 3\r\n\r\nabcGET";
	struct http_limits limits;
	unsigned n;

	(void)state;
	http_limits_init(&limits);
	feed_run(&feed, &request, &limits, view_str(input), sizeof(input) - 1, 1);
	assert_int_equal(feed.end, FEED_DONE);
	assert_int_equal(feed.used, sizeof(input) - 1 - 3);
	assert_int_equal(feed.head.method, HTTP_PUT);
	assert_true(view_is(feed.head.target_text, "/v1/fs?path=%2Fa+b"));
	assert_true(view_is(feed.head.target.path, "/v1/fs"));
	assert_true(view_is(feed.head.target.query, "path=%2Fa+b"));
	assert_string_equal(feed.head.host.host, "api.test");
	assert_int_equal(feed.head.host.port, 7420);
	assert_int_equal(feed.head.fields, 6);
	assert_int_equal(feed.head.length, 3);
	assert_true(view_is(http_head_field(&feed.head, "ACCEPT", &n)->value, "*/*"));
	assert_int_equal(http_head_field(&feed.head, "empty", &n)->value.n, 0);
	assert_null(http_head_field(&feed.head, "x-a", &n));
	assert_int_equal(n, 2);
	assert_null(http_head_field(&feed.head, "x-b", &n));
	assert_int_equal(n, 0);
	assert_true(http_list_has(view_str("a, Upgrade ,b"), "upgrade"));
	assert_false(http_list_has(view_str("upgrades, x"), "upgrade"));
}

/* E26, E27: requests in one connection are read one by one, each with its own host. */
static void
test_pipeline(void **state)
{
	static const char first[] = "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n";
	static const char both[] = "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n"
				   "GET /admin HTTP/1.1\r\nHost: evil.test\r\n\r\n";
	struct http_limits limits;
	struct view input = view_str(both);

	(void)state;
	http_limits_init(&limits);
	feed_all(&feed, &request, &limits, input, "E26");
	assert_int_equal(feed.end, FEED_DONE);
	assert_int_equal(feed.used, sizeof(first) - 1);
	assert_string_equal(feed.head.host.host, "a.test");
	feed_all(&feed, &request, &limits, view_skip(input, feed.used), "E27");
	assert_int_equal(feed.end, FEED_DONE);
	assert_string_equal(feed.head.host.host, "evil.test");
	assert_true(view_is(feed.head.target.path, "/admin"));
}

static void
expect_limit(
	const struct http_limits *limits, struct buf *b, enum http_reason reason, const char *id)
{
	assert_int_equal(buf_check(b), 0);
	feed_all(&feed, &request, limits, buf_view(b), id);
	if (feed.reason != reason)
		fail_msg("%s: %s, not %s", id, http_reason_name(feed.reason),
			http_reason_name(reason));
	assert_int_equal(feed.end, reason == HTTP_FINE ? FEED_DONE : FEED_REFUSED);
	buf_clear(b);
}

static void
pad(struct buf *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_add_byte(b, 'a');
}

/* F9, L3: sizes, at the edge and one above it. */
static void
test_limits(void **state)
{
	static const char line[] = "GET / HTTP/1.1\r\nHost: a.test\r\n";
	struct http_limits limits;
	auto_buf struct buf b;

	(void)state;
	buf_init(&b, 1 << 20);
	http_limits_init(&limits);
	for (size_t extra = 0; extra < 2; extra++) {
		buf_add_str(&b, "GET /");
		pad(&b, 8191 + extra);
		buf_add_str(&b, " HTTP/1.1\r\nHost: a.test\r\n\r\n");
		expect_limit(&limits, &b, extra == 0 ? HTTP_FINE : HTTP_NO_TARGET_LONG, "F9");

		buf_add_str(&b, line);
		for (size_t i = 0; i < 99 + extra; i++)
			buf_addf(&b, "x%zu: y\r\n", i);
		buf_add_str(&b, "\r\n");
		expect_limit(&limits, &b, extra == 0 ? HTTP_FINE : HTTP_NO_FIELDS, "L3 fields");

		buf_add_str(&b, line);
		buf_add_str(&b, "x: ");
		pad(&b, 32768 - b.n - 4 + extra);
		buf_add_str(&b, "\r\n\r\n");
		expect_limit(&limits, &b, extra == 0 ? HTTP_FINE : HTTP_NO_HEAD_LONG, "L3 bytes");
	}
	pad(&b, 100000);
	expect_limit(&limits, &b, HTTP_NO_TARGET_LONG, "L3 request line");
	buf_add_str(&b, line);
	pad(&b, 65536);
	expect_limit(&limits, &b, HTTP_NO_HEAD_LONG, "L3 one header");
	buf_add_str(&b, POST_("X-HTTP-Method-Override: PUT\r\n", ""));
	limits.method_override = true;
	expect_limit(&limits, &b, HTTP_FINE, "E29 allowed");
	buf_add_str(&b, "GET / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\n\r\na");
	limits.body_methods |= 1u << HTTP_GET;
	expect_limit(&limits, &b, HTTP_FINE, "E21 allowed");
	buf_add_str(&b, "GET / HTTP/1.1\r\nHost: [::1]:7420\r\n\r\n");
	limits.host_flags = HTTP_AUTHORITY_IP;
	expect_limit(&limits, &b, HTTP_FINE, "address as Host");
}

/* No input byte can end up in a refusal, and a refusal stays. */
static void
test_sticky(void **state)
{
	static const char bad[] = "GET  / HTTP/1.1\r\n";
	struct http_limits limits;
	struct http_scan scan;

	(void)state;
	http_limits_init(&limits);
	http_scan_request(&scan, &limits);
	assert_true(http_head_feed(&scan, view_str(bad), &feed.head) < 0);
	assert_true(http_head_feed(&scan, view_str(bad), &feed.head) < 0);
	assert_int_equal(scan.reason, HTTP_NO_REQUEST_LINE);
	assert_string_equal(http_reason_code(scan.reason), "framing");
	assert_int_equal(http_reason_status(scan.reason, HTTP_RESPONSE), 502);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_accepted),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_pipeline),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_sticky),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
