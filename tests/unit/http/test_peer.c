/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Differential test against http-parser (libhttp-parser-dev), which is more lenient than we are:
 * over generated messages, legal ones and mutations of them, whatever we accept it must accept
 * too, with the same method or status, the same body and the same end of the message. A
 * difference means that somebody behind us could read another message than we judged.
 */
#include "feed.h"
#include "peer.h"

#include "lib/base/buf.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

enum { ROUNDS = 120000 };

struct dice {
	uint64_t state;
};

/* xorshift64*: the same corpus in every run. */
static uint32_t
next(struct dice *r, uint32_t below)
{
	r->state ^= r->state >> 12;
	r->state ^= r->state << 25;
	r->state ^= r->state >> 27;
	return (uint32_t)((r->state * 2685821657736338717u) >> 32) % below;
}

static const char *
pick(struct dice *r, const char *const *from, size_t n)
{
	return from[next(r, (uint32_t)n)];
}

#define PICK(r, table) pick(r, table, ARRAY_LEN(table))

static const char *const methods[] = {
	"GET", "GET", "POST", "POST", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"};

static const char *const targets[] = {"/", "/v1/sandboxes", "/v1/fs?path=%2Fa+b", "/a?b=c&d", "//x",
	"/a;b", "http://a.test/x", "http://a.test:80?y", "*", "/x|y", "/?|{}[]"};

static const char *const starts[] = {"HTTP/1.1 200 OK", "HTTP/1.1 200 ", "HTTP/1.0 200 OK",
	"HTTP/1.1 204 No", "HTTP/1.1 304 Not Modified", "HTTP/1.1 404 \xe4",
	"HTTP/1.1 100 Continue", "HTTP/1.1 500 Internal Server Error"};

static const char *const fields[] = {"Accept: */*\r\n", "X: \t a b \t\r\n", "Empty:\r\n",
	"Connection: close\r\n", "Connection: keep-alive\r\n", "Connection: Upgrade\r\n",
	"Upgrade: websocket\r\n", "Expect: 100-continue\r\n", "X-8: \xc3\xa4\r\n",
	"Cookie: a=b; c=\"d\"\r\n", "TE: trailers\r\n", "Content-Type: text/plain\r\n",
	"Connection: close, keep-alive\r\n", "Trailer: x\r\n", "Content-Lengt: 5\r\n",
	"Content-Length2: 5\r\n", "Transfer-Encodin: chunked\r\n", "X: a\r\n b\r\n", "X : y\r\n",
	"Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\n",
	"Transfer-Encoding: gzip, chunked\r\n", "Host: b.test\r\n", "Proxy-Connection: close\r\n"};

static const char *const extensions[] = {"", "", "", ";x", ";x=y;z", ";x=\"y\"", " ", "; x"};

static const char *const trailers[] = {
	"", "", "", "X: y\r\n", "Host: evil.test\r\n", "Content-Length: 5\r\n", "X:\r\n"};

static const char interesting[] = "\r\n\t \0:;,=/%?#0123456789abcdefxX\x7f\x80\xff_+-\"";

static void
add_data(struct dice *r, struct buf *b, size_t n)
{
	while (n-- > 0)
		buf_add_byte(b, (uint8_t)next(r, 256));
}

static void
add_chunks(struct dice *r, struct buf *b)
{
	for (uint32_t i = next(r, 3); i > 0; i--) {
		uint32_t n = 1 + next(r, 20);

		buf_addf(b, next(r, 4) == 0 ? "%04X%s\r\n" : "%x%s\r\n", n, PICK(r, extensions));
		add_data(r, b, n);
		buf_add_str(b, "\r\n");
	}
	buf_addf(b, "0%s\r\n%s\r\n", PICK(r, extensions), PICK(r, trailers));
}

static void
add_message(struct dice *r, struct buf *b, bool response)
{
	uint32_t framing = next(r, 4), n = next(r, 30);

	if (next(r, 20) == 0)
		buf_add_str(b, "\r\n");
	if (response)
		buf_addf(b, "%s\r\n", PICK(r, starts));
	else
		buf_addf(b, "%s %s HTTP/1.%u\r\nHost: a.test\r\n", PICK(r, methods),
			PICK(r, targets), next(r, 8) > 0);
	for (uint32_t i = next(r, 4); i > 0; i--)
		buf_add_str(b, PICK(r, fields));
	if (framing == 1)
		buf_addf(b, "Content-Length: %u\r\n\r\n", n);
	else if (framing == 2)
		buf_add_str(b, "transfer-encoding: chunked\r\n\r\n");
	else
		buf_add_str(b, "\r\n");
	if (framing == 1)
		add_data(r, b, n);
	else if (framing == 2)
		add_chunks(r, b);
}

static void
mutate(struct dice *r, struct buf *b)
{
	uint32_t at = next(r, (uint32_t)b->n);

	switch (next(r, 4)) {
	case 0:
		b->p[at] = (uint8_t)interesting[next(r, sizeof(interesting) - 1)];
		break;
	case 1:
		memmove(b->p + at, b->p + at + 1, b->n - at - 1);
		b->n--;
		break;
	case 2:
		buf_add_byte(b, 0);
		memmove(b->p + at + 1, b->p + at, b->n - at - 1);
		b->p[at] = (uint8_t)interesting[next(r, sizeof(interesting) - 1)];
		break;
	default:
		b->p[at] = (uint8_t)next(r, 256);
		break;
	}
}

static struct feed feed;
static struct peer peer;

static void
differ(const struct buf *b, const char *what)
{
	for (size_t i = 0; i < b->n; i++)
		print_error(b->p[i] >= 0x20 && b->p[i] < 0x7f && b->p[i] != '\\' ? "%c" : "\\x%02x",
			b->p[i]);
	print_error("\n");
	fail_msg("%s: ours %zu bytes, %zu of body; http-parser %zu, %zu", what, feed.used,
		feed.body_n, peer.used, peer.body_n);
}

/* Whether we accepted; fails the test where http-parser reads another message. */
static bool
compare(const struct buf *b, bool response, bool no_body)
{
	const struct feed_side side = {
		response ? HTTP_RESPONSE : HTTP_REQUEST, no_body ? HTTP_HEAD : HTTP_GET, true};
	struct http_limits limits;
	bool closes;

	http_limits_init(&limits);
	limits.body_bytes = FEED_BODY;
	feed_run(&feed, &side, &limits, buf_view(b), b->n, 1);
	closes = feed.end == FEED_PENDING && feed.in_body &&
		 feed.head.framing == HTTP_BODY_UNTIL_CLOSE;
	if (feed.end != FEED_DONE && !closes)
		return false;
	peer_run(&peer, response, no_body, closes, buf_view(b));
	if (peer.refused && !peer.trailing)
		differ(b, "http-parser refuses");
	if (!peer.refused && (!peer.complete || peer.used != feed.used))
		differ(b, "another end");
	if (peer.body_n != feed.body_n || memcmp(peer.body, feed.body, feed.body_n) != 0)
		differ(b, "another body");
	if (response ? peer.method_or_status != feed.head.status
		     : strcmp(peer_method(&peer), http_method_name(feed.head.method)) != 0)
		differ(b, "another method or status");
	if (!peer.refused && feed.head.keep_alive && !peer.keep_alive)
		differ(b, "kept alive");
	return true;
}

static void
run(bool response, uint64_t seed)
{
	struct dice r = {.state = seed};
	unsigned clean = 0, clean_ok = 0, mutants = 0, mutants_ok = 0;
	auto_buf struct buf b;

	buf_init(&b, 1 << 16);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t mutations = next(&r, 4);
		bool ok;

		buf_clear(&b);
		add_message(&r, &b, response);
		for (uint32_t m = 0; m < mutations; m++)
			mutate(&r, &b);
		if (next(&r, 3) == 0)
			add_message(&r, &b, response); /* a pipelined one behind it */
		assert_int_equal(buf_check(&b), 0);
		ok = compare(&b, response, response && next(&r, 8) == 0);
		*(mutations == 0 ? &clean : &mutants) += 1;
		*(mutations == 0 ? &clean_ok : &mutants_ok) += ok;
	}
	print_message("%s: accepted %u of %u clean, %u of %u mutated\n",
		response ? "responses" : "requests", clean_ok, clean, mutants_ok, mutants);
	/* The corpus must reach both verdicts, else it compares nothing. */
	assert_in_range(clean_ok, clean / 10, clean);
	assert_in_range(mutants_ok, mutants / 20, mutants / 2);
}

static void
test_requests(void **state)
{
	(void)state;
	run(false, 0x9e3779b97f4a7c15);
}

static void
test_responses(void **state)
{
	(void)state;
	run(true, 0xd1b54a32d192ed03);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_responses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
