/* SPDX-License-Identifier: Apache-2.0 */
/* Since when a stream takes nothing: deadlines of slow peers hang on it (L1, L9), whatever is added and tried meanwhile. */
#include "gateway/outbox.h"

#include "lib/base/attr.h"
#include "lib/loop/loop.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static void
on_nothing(void *owner)
{
	(void)owner;
}

static void
on_failed(void *owner, const struct err *why)
{
	(void)owner, (void)why;
}

static const struct stream_events events = {
	.readable = on_nothing, .writable = on_nothing, .shaken = on_nothing, .failed = on_failed};

struct ends {
	struct ev_loop *loop;
	struct stream *stream;
	struct outbox out;
	int far;
};

static void
ends_make(struct ends *e)
{
	int fds[2];

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	e->loop = loop_new();
	e->stream = stream_new(e->loop, fds[0], &events, e);
	e->far = fds[1];
	outbox_init(&e->out, e->stream, 1);
}

static void
ends_end(struct ends *e)
{
	outbox_done(&e->out);
	stream_close(e->stream, false);
	(void)close(e->far);
	loop_free(e->loop);
}

static void
fill(struct ends *e, ev_tstamp now)
{
	static const uint8_t bytes[16384];

	while (outbox_left(&e->out) == 0)
		assert_int_equal(outbox_put(&e->out, view_of(bytes, sizeof(bytes)), now), 0);
}

static void
drain(struct ends *e)
{
	static uint8_t room[65536];

	while (read(e->far, room, sizeof(room)) > 0)
		continue;
}

static void
L9_trying_again_is_not_taking(void **state)
{
	struct ends e;

	(void)state;
	ends_make(&e);
	fill(&e, 10);
	for (int now = 11; now < 50; now++) {
		buf_add_str(outbox_buf(&e.out), "more");
		assert_int_equal(outbox_flush(&e.out, now), 0);
		assert_true(e.out.moved == 10);
	}
	drain(&e);
	assert_int_equal(outbox_flush(&e.out, 50), 0);
	assert_true(e.out.moved == 50);
	ends_end(&e);
}

/* A stream that was idle for long is late only from what it does not take on. */
static void
time_begins_with_the_first_byte_that_waits(void **state)
{
	struct ends e;

	(void)state;
	ends_make(&e);
	fill(&e, 10);
	drain(&e);
	while (outbox_left(&e.out) > 0) {
		assert_int_equal(outbox_flush(&e.out, 11), 0);
		drain(&e);
	}
	fill(&e, 12);
	while (outbox_left(&e.out) > 0) {
		drain(&e);
		assert_int_equal(outbox_flush(&e.out, 13), 0);
	}
	/* Full to the last byte, outside of the outbox. */
	while (stream_write(e.stream, view_str("x")) == 1)
		continue;
	assert_int_equal(outbox_put(&e.out, view_str("waits"), 100), 0);
	assert_true(outbox_left(&e.out) == 5 && e.out.moved == 100);
	assert_int_equal(outbox_flush(&e.out, 120), 0);
	assert_true(e.out.moved == 100);
	ends_end(&e);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(L9_trying_again_is_not_taking),
		cmocka_unit_test(time_begins_with_the_first_byte_that_waits)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
