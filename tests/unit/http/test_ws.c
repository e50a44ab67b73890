/* SPDX-License-Identifier: Apache-2.0 */
/* WebSocket: handshake of both sides, and frames read at every cut. */
#include "feed.h"
#include "lib/http/write.h"
#include "lib/http/ws.h"
#include "lib/http/ws_hand.h"

#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#define KEY    "dGhlIHNhbXBsZSBub25jZQ==" /* the example of RFC 6455, 1.3 */
#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
#define GET_   "GET /v1/sandboxes/x/ssh?rows=24 HTTP/1.1\r\nHost: a.test\r\n"
#define UP_    "Connection: Upgrade\r\nUpgrade: websocket\r\n"
#define V13_   "Sec-WebSocket-Version: 13\r\n"
#define KEY_   "Sec-WebSocket-Key: " KEY "\r\n"

static struct feed feed;

struct hand {
	enum http_reason reason;
	const char *input;
};

static const struct hand requests[] = {
	{HTTP_FINE, GET_ UP_ V13_ KEY_ "\r\n"},
	{HTTP_FINE, GET_ UP_ V13_ KEY_
		"Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n"},
	{HTTP_FINE,
		GET_ "connection: keep-alive, upgrade\r\nupgrade: WebSocket\r\n" V13_ KEY_ "\r\n"},
	{HTTP_NO_WEBSOCKET, GET_ V13_ KEY_ "\r\n"},
	{HTTP_NO_WEBSOCKET, GET_ "Upgrade: websocket\r\n" V13_ KEY_ "\r\n"},
	{HTTP_NO_WEBSOCKET, GET_ "Connection: upgrade\r\n" V13_ KEY_ "\r\n"},
	{HTTP_NO_WEBSOCKET,
		GET_ "Connection: upgrade\r\nUpgrade: websocket, h2c\r\n" V13_ KEY_ "\r\n"},
	{HTTP_NO_WEBSOCKET, GET_ "Connection: upgrade\r\nUpgrade: h2c\r\n" V13_ KEY_ "\r\n"},
	{HTTP_NO_WEBSOCKET, GET_ UP_ "Upgrade: websocket\r\n" V13_ KEY_ "\r\n"},
	{HTTP_NO_WEBSOCKET, GET_ UP_ KEY_ "\r\n"},
	{HTTP_NO_WEBSOCKET_VERSION, GET_ UP_ "Sec-WebSocket-Version: 8\r\n" KEY_ "\r\n"},
	{HTTP_NO_WEBSOCKET_VERSION, GET_ UP_ "Sec-WebSocket-Version: 13, 8\r\n" KEY_ "\r\n"},
	{HTTP_NO_WEBSOCKET, GET_ UP_ V13_ V13_ KEY_ "\r\n"},
	{HTTP_NO_WEBSOCKET, GET_ UP_ V13_ "\r\n"},
	{HTTP_NO_WEBSOCKET, GET_ UP_ V13_ KEY_ KEY_ "\r\n"},
	{HTTP_NO_WEBSOCKET, GET_ UP_ V13_ "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ\r\n\r\n"},
	{HTTP_NO_WEBSOCKET, GET_ UP_ V13_ "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZR==\r\n\r\n"},
	{HTTP_NO_WEBSOCKET, GET_ UP_ V13_ "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZ*==\r\n\r\n"},
	{HTTP_NO_WEBSOCKET, GET_ UP_ V13_ "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQAA\r\n\r\n"},
	{HTTP_NO_WEBSOCKET, "GET / HTTP/1.0\r\nHost: a.test\r\n" UP_ V13_ KEY_ "\r\n"},
	{HTTP_NO_WEBSOCKET, "POST / HTTP/1.1\r\nHost: a.test\r\n" UP_ V13_ KEY_ "\r\n"},
};

static void
test_hand_server(void **state)
{
	const struct feed_side side = {.side = HTTP_REQUEST};
	struct http_limits limits;
	char accept[WS_ACCEPT_TEXT];
	auto_buf struct buf b;

	(void)state;
	buf_init(&b, 4096);
	http_limits_init(&limits);
	for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
		enum http_reason no;

		feed_run(&feed, &side, &limits, view_str(requests[i].input),
			strlen(requests[i].input), 1);
		assert_int_equal(feed.end, FEED_DONE);
		no = ws_hand_check(&feed.head, accept);
		if (no != requests[i].reason)
			fail_msg("H2 row %zu: %s", i, http_reason_name(no));
		if (no == HTTP_FINE)
			assert_string_equal(accept, ACCEPT);
	}
	assert_int_equal(ws_hand_answer(&b, ACCEPT), 0);
	assert_true(view_is(buf_view(&b),
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
		"Connection: Upgrade\r\nSec-WebSocket-Accept: " ACCEPT "\r\n\r\n"));
}

#define GO_  "HTTP/1.1 101 x\r\n"
#define ACC_ "Sec-WebSocket-Accept: " ACCEPT "\r\n"

static const struct hand answers[] = {
	{HTTP_FINE, GO_ UP_ ACC_ "\r\n"},
	{HTTP_NO_WEBSOCKET, "HTTP/1.1 200 x\r\nContent-Length: 0\r\n" UP_ ACC_ "\r\n"},
	{HTTP_NO_WEBSOCKET, GO_ UP_ "\r\n"},
	{HTTP_NO_WEBSOCKET, GO_ UP_ "Sec-WebSocket-Accept: t3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"},
	{HTTP_NO_WEBSOCKET, GO_ UP_ ACC_ ACC_ "\r\n"},
	{HTTP_NO_WEBSOCKET, GO_ "Connection: upgrade\r\nUpgrade: foo\r\n" ACC_ "\r\n"},
	{HTTP_NO_WEBSOCKET, GO_ UP_ ACC_ "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"},
	{HTTP_NO_WEBSOCKET, GO_ UP_ ACC_ "Sec-WebSocket-Protocol: x\r\n\r\n"},
};

/* H3 */
static void
test_hand_client(void **state)
{
	const struct feed_side side = {HTTP_RESPONSE, HTTP_GET, true};
	static const uint8_t nonce[] = "the sample nonce";
	struct http_limits limits;
	char key[WS_KEY_TEXT];

	(void)state;
	http_limits_init(&limits);
	ws_hand_key(nonce, key);
	assert_string_equal(key, KEY);
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		enum http_reason no;

		feed_run(&feed, &side, &limits, view_str(answers[i].input),
			strlen(answers[i].input), 1);
		assert_int_equal(feed.end, FEED_DONE);
		no = ws_hand_verify(&feed.head, key);
		if (no != answers[i].reason)
			fail_msg("H3 row %zu: %s", i, http_reason_name(no));
	}
}

/*
 * What a run of the decoder saw, as text: "t:hello$" text message, "b:..$", "p:..", "o:..",
 * "c1000:..", "!1002".
 */
struct seen {
	char text[512];
	size_t n;
	bool in_message;
};

static void
see(struct seen *s, const char *head, struct view data, const char *tail)
{
	size_t h = strlen(head), t = strlen(tail);

	if (s->n + h + data.n + t > sizeof(s->text))
		return; /* long payloads are only counted by the decoder */
	memcpy(s->text + s->n, head, h);
	if (data.n > 0)
		memcpy(s->text + s->n + h, data.p, data.n);
	memcpy(s->text + s->n + h + data.n, tail, t);
	s->n += h + data.n + t;
}

static bool
see_event(struct seen *s, const struct ws_event *e)
{
	char code[16];

	switch (e->kind) {
	case WS_EVENT_MORE:
		return false;
	case WS_EVENT_DATA:
		see(s,
			s->in_message          ? ""
			: e->opcode == WS_TEXT ? "t:"
					       : "b:",
			e->data, e->end ? "$" : "");
		s->in_message = !e->end;
		return true;
	case WS_EVENT_PING:
		see(s, "p:", e->data, ";");
		return true;
	case WS_EVENT_PONG:
		see(s, "o:", e->data, ";");
		return true;
	case WS_EVENT_CLOSE:
	case WS_EVENT_REFUSED:
		(void)snprintf(
			code, sizeof(code), e->kind == WS_EVENT_CLOSE ? "c%u:" : "!%u", e->code);
		see(s, code, e->data, "");
		return e->kind == WS_EVENT_CLOSE;
	}
	return false;
}

static void
ws_run(struct seen *s, enum ws_side side, uint64_t max, struct view input, size_t first,
	size_t step)
{
	size_t had = 0;
	struct ws ws;

	memset(s, 0, sizeof(*s));
	ws_init(&ws, side, max);
	for (size_t have = first;; have += step) {
		size_t upto = have < input.n ? have : input.n, n = upto - had;
		auto_free uint8_t *copy = malloc(n + 1);
		uint8_t *p = copy;
		struct ws_event e;

		assert_non_null(copy);
		memcpy(copy, input.p + had, n);
		had = upto;
		do {
			ws_next(&ws, &p, &n, &e);
		} while (see_event(s, &e));
		if (e.kind == WS_EVENT_REFUSED || upto == input.n)
			return;
		assert_int_equal(n, 0);
	}
}

struct frames {
	enum ws_side side;
	const char *input;
	size_t n;
	const char *seen;
};

#define S(input, seen)                                    \
	{                                                 \
		WS_SERVER, input, sizeof(input) - 1, seen \
	}
#define C(input, seen)                                    \
	{                                                 \
		WS_CLIENT, input, sizeof(input) - 1, seen \
	}
#define M0    "\0\0\0\0" /* a mask that changes nothing */
#define M     "\x37\xfa\x21\x3d"
#define HELLO "\x7f\x9f\x4d\x51\x58" /* "Hello" under M (RFC 6455, 5.7) */

static const struct frames frames[] = {
	S("\x81\x85" M HELLO, "t:Hello$"),
	S("\x82\x85" M HELLO, "b:Hello$"),
	S("\x81\x80" M0, "t:$"),
	S("\x81\x80" M0 "\x81\x81" M0 "a", "t:$t:a$"),
	S("\x01\x83" M0 "Hel"
	  "\x80\x82" M0 "lo",
		"t:Hello$"),
	S("\x01\x80" M0 "\x00\x80" M0 "\x80\x80" M0, "t:$"),
	S("\x01\x83" M0 "Hel"
	  "\x89\x81" M0 "x"
	  "\x8a\x80" M0 "\x80\x82" M0 "lo",
		"t:Help:x;o:;lo$"),
	S("\x01\x81" M0 "\xc3"
	  "\x80\x81" M0 "\xa4",
		"t:\xc3\xa4$"),
	S("\x88\x80" M0, "c1005:"),
	S("\x88\x82" M0 "\x03\xe8", "c1000:"),
	S("\x88\x85" M0 "\x03\xe8"
	  "bye",
		"c1000:bye"),
	S("\x88\x82" M0 "\x13\x87", "c4999:"),
	C("\x81\x05Hello", "t:Hello$"),
	C("\x89\x00\x8a\x01y", "p:;o:y;"),
	/* masks on the wrong side */
	S("\x81\x05Hello", "!1002"),
	C("\x81\x85" M HELLO, "!1002"),
	/* reserved bits and opcodes */
	S("\xc1\x85" M HELLO, "!1002"),
	S("\xa1\x85" M HELLO, "!1002"),
	S("\x91\x85" M HELLO, "!1002"),
	S("\x83\x80" M0, "!1002"),
	S("\x87\x80" M0, "!1002"),
	S("\x8b\x80" M0, "!1002"),
	S("\x8f\x80" M0, "!1002"),
	/* control frames: fragmented, long */
	S("\x09\x80" M0, "!1002"),
	S("\x08\x80" M0, "!1002"),
	S("\x89\xfe\x00\x7e" M0, "!1002"),
	S("\x89\xff\x00\x00\x00\x00\x00\x00\x00\x01" M0, "!1002"),
	/* fragmentation */
	S("\x80\x80" M0, "!1002"),
	S("\x00\x80" M0, "!1002"),
	S("\x01\x81" M0 "a"
	  "\x81\x81" M0 "b",
		"t:a!1002"),
	S("\x01\x81" M0 "a"
	  "\x02\x81" M0 "b",
		"t:a!1002"),
	S("\x81\x81" M0 "a"
	  "\x80\x81" M0 "b",
		"t:a$!1002"),
	/* lengths that are longer than needed, or negative */
	S("\x82\xfe\x00\x7d" M0, "!1002"),
	S("\x82\xfe\x00\x00" M0, "!1002"),
	S("\x82\xff\x00\x00\x00\x00\x00\x00\xff\xff" M0, "!1002"),
	S("\x82\xff\x80\x00\x00\x00\x00\x00\x00\x00" M0, "!1002"),
	/* sizes: the maximum is 200 here */
	S("\x82\xfe\x00\xc9" M0, "!1009"),
	S("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff" M0, "!1009"),
	S("\x02\x81" M0 "a"
	  "\x80\xfe\x00\xc8" M0,
		"b:a!1009"),
	/* text that is not UTF-8 */
	S("\x81\x81" M0 "\xff", "!1007"),
	S("\x81\x82" M0 "\xc0\xae", "!1007"),
	S("\x81\x81" M0 "\xc3", "!1007"),
	S("\x81\x83" M0 "\xed\xa0\x80", "!1007"),
	S("\x01\x81" M0 "\xc3"
	  "\x80\x81" M0 "a",
		"!1007"),
	S("\x01\x81" M0 "\xc3"
	  "\x80\x80" M0,
		"!1007"),
	/* close frames */
	S("\x88\x81" M0 "\x03", "!1002"),
	S("\x88\x82" M0 "\x03\xe7", "!1002"),
	S("\x88\x82" M0 "\x03\xec", "!1002"),
	S("\x88\x82" M0 "\x03\xed", "!1002"),
	S("\x88\x82" M0 "\x03\xee", "!1002"),
	S("\x88\x82" M0 "\x03\xf7", "!1002"),
	S("\x88\x82" M0 "\x07\xd0", "!1002"),
	S("\x88\x82" M0 "\x13\x88", "!1002"),
	S("\x88\x83" M0 "\x03\xe8\xff", "!1007"),
	S("\x88\x80" M0 "\x81\x80" M0, "c1005:!1002"),
	S("\x88\x80" M0 "\x88\x80" M0, "c1005:!1002"),
};

/*
 * Events of text are handed out before a later cut shows it illegal: compare refusals without
 * them.
 */
static bool
same_seen(const struct seen *a, const char *want)
{
	size_t n = strlen(want);
	const char *bang = memchr(a->text, '!', a->n);

	if (a->n == n && memcmp(a->text, want, n) == 0)
		return true;
	return strcmp(want, "!1007") == 0 && bang != NULL && (size_t)(a->text + a->n - bang) == n &&
	       memcmp(bang, want, n) == 0;
}

static void
test_frames(void **state)
{
	static struct seen seen;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(frames); i++) {
		const struct frames *f = &frames[i];
		struct view input = view_of(f->input, f->n);

		for (size_t cut = 1; cut <= input.n; cut++) {
			ws_run(&seen, f->side, 200, input, cut, input.n);
			if (!same_seen(&seen, f->seen))
				fail_msg("row %zu cut %zu: %.*s", i, cut, (int)seen.n, seen.text);
		}
		ws_run(&seen, f->side, 200, input, 1, 1);
		if (!same_seen(&seen, f->seen))
			fail_msg("row %zu byte by byte: %.*s", i, (int)seen.n, seen.text);
	}
}

/*
 * Every length around the edges of the three forms goes through encoder and decoder of both
 * sides.
 */
static void
test_lengths(void **state)
{
	static const size_t lengths[] = {0, 1, 125, 126, 127, 65535, 65536, 70000};
	static const uint8_t mask[4] = {1, 0xff, 0x80, 7};
	auto_buf struct buf b, payload;

	(void)state;
	buf_init(&b, 1 << 18);
	buf_init(&payload, 1 << 18);
	for (size_t i = 0; i < 70000; i++)
		buf_add_byte(&payload, (uint8_t)(i * 7));
	for (size_t i = 0; i < ARRAY_LEN(lengths) * 2; i++) {
		bool client = i % 2 == 0;
		struct view sent = view_of(payload.p, lengths[i / 2]);
		struct ws ws;
		struct ws_event e;
		uint8_t *p;
		size_t n;

		buf_clear(&b);
		assert_int_equal(ws_frame_add(&b, WS_BINARY, true, client ? mask : NULL, sent), 0);
		ws_init(&ws, client ? WS_SERVER : WS_CLIENT, sent.n);
		p = b.p;
		n = b.n;
		ws_next(&ws, &p, &n, &e);
		assert_true(e.kind == WS_EVENT_DATA && e.end && e.opcode == WS_BINARY && n == 0);
		assert_true(view_eq(e.data, sent));
		ws_next(&ws, &p, &n, &e);
		assert_int_equal(e.kind, WS_EVENT_MORE);
	}
}

static void
test_encoder(void **state)
{
	static const unsigned bad[] = {
		0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65536 + 1000};
	auto_buf struct buf b, small;
	uint8_t long_text[126];

	(void)state;
	buf_init(&b, 4096);
	buf_init(&small, 3);
	memset(long_text, 'a', sizeof(long_text));
	assert_int_equal(ws_frame_add(&b, WS_PING, true, NULL, view_of(long_text, 126)), -EINVAL);
	assert_int_equal(ws_frame_add(&b, WS_PING, false, NULL, view_of(long_text, 1)), -EINVAL);
	assert_int_equal(ws_close_add(&b, NULL, WS_NORMAL, view_of(long_text, 124)), -EINVAL);
	assert_int_equal(ws_close_add(&b, NULL, WS_NORMAL, view_str("\xff")), -EINVAL);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(ws_close_add(&b, NULL, bad[i], view_str("")), -EINVAL);
	assert_int_equal(ws_frame_add(&small, WS_TEXT, true, NULL, view_str("ab")), -ENOBUFS);
	assert_int_equal(b.n + small.n, 0);
	assert_int_equal(ws_close_add(&b, NULL, WS_GOING_AWAY, view_str("bye")), 0);
	assert_true(view_is(buf_view(&b), "\x88\x05\x03\xe9"
					  "bye"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hand_server),
		cmocka_unit_test(test_hand_client),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_encoder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
