/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers in a loop: a good message reaches its handler with its descriptor; one in the wrong state,
 * without a row, or refused by its handler loses the peer; a peer that does not read is lost at its
 * queue's ceiling; a closed peer is not touched again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/ipc/peer.h"
#include "lib/loop/loop.h"

#include <errno.h>
#include <fcntl.h>

enum { STARTING, READY };

struct seen {
	int keys, lists, lost;
	int fd;
	uint64_t tag;
	char why[sizeof(((struct err *)0)->text)];
};

static int
on_key(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_input_file *m, struct err *err)
{
	struct seen *seen = peer->owner;

	(void)m, (void)err;
	seen->keys++;
	seen->tag = in->tag;
	seen->fd = ipc_msg_take(in, 0);
	return 0;
}
IPC_HANDLER(input_file, on_key)

static int
on_end(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_end *m, struct err *err)
{
	struct seen *seen = peer->owner;

	(void)in;
	seen->lists++;
	return m->more ? err_set(err, -EPROTO, "no more, please") : 0;
}
IPC_HANDLER(end, on_end)

static const struct ipc_row rows[] = {
	IPC_ROW(INPUT_FILE, IN(READY), on_key),
	IPC_ROW(END, IN_ANY, on_end),
};

static void
on_lost(struct ipc_peer *peer, const struct err *why)
{
	struct seen *seen = peer->owner;

	seen->lost++;
	memcpy(seen->why, why->text, sizeof(seen->why));
	ipc_peer_close(peer);
}

static void
never_lost(struct ipc_peer *peer, const struct err *why)
{
	(void)peer;
	fail_msg("lost: %s", why->text);
}

struct ends {
	struct ev_loop *loop;
	struct ipc_peer *engine, *api;
	struct seen seen;
	struct err err;
};

static void
ends_open(struct ends *e, void (*engine_lost)(struct ipc_peer *, const struct err *))
{
	int fds[2];

	*e = (struct ends){.loop = loop_new()};
	assert_int_equal(ipc_pair(fds, &e->err), 0);
	e->engine = ipc_peer_new(
		e->loop, fds[0], EDGE_API_ENGINE, ROOM_ENGINE, NULL, 0, NULL, engine_lost, &e->err);
	e->api = ipc_peer_new(e->loop, fds[1], EDGE_API_ENGINE, ROOM_API, rows, ARRAY_LEN(rows),
		&e->seen, on_lost, &e->err);
	assert_non_null(e->engine);
	assert_non_null(e->api);
}

static void
turns(struct ends *e, int n)
{
	for (int i = 0; i < n; i++)
		(void)ev_run(e->loop, EVRUN_NOWAIT);
}

static void
message_and_descriptor(void **state)
{
	struct ends e;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	ends_open(&e, never_lost);
	e.api->state = READY;
	IPC_SEND_FD(e.engine, 42, INPUT_FILE, input_file, fd, {0});
	turns(&e, 3);
	assert_int_equal(e.seen.keys, 1);
	assert_int_equal(e.seen.tag, 42);
	assert_true(fcntl(e.seen.fd, F_GETFD) == FD_CLOEXEC);
	(void)close(e.seen.fd);
	(void)close(fd);
	ipc_peer_close(e.engine);
	ipc_peer_close(e.api);
	loop_free(e.loop);
}

static void
lost_by(void (*send)(struct ends *), const char *why)
{
	struct ends e;

	ends_open(&e, never_lost);
	send(&e);
	ipc_peer_close(e.engine);
	turns(&e, 3);
	assert_int_equal(e.seen.lost, 1);
	assert_non_null(strstr(e.seen.why, why));
	loop_free(e.loop);
}

static void
send_early(struct ends *e)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	IPC_SEND_FD(e->engine, 1, INPUT_FILE, input_file, fd, {0});
	(void)close(fd);
}

static void
send_without_row(struct ends *e)
{
	IPC_SEND(e->engine, 1, DONE, done, {0});
}

static void
send_refused(struct ends *e)
{
	IPC_SEND(e->engine, 1, END, end, {.more = true});
}

static void
send_nothing(struct ends *e)
{
	(void)e;
}

static void
broken_peers_are_lost(void **state)
{
	(void)state;
	lost_by(send_early, "INPUT_FILE in state 0");
	lost_by(send_without_row, "DONE is not in the table");
	lost_by(send_refused, "no more, please");
	lost_by(send_nothing, "closed");
}

static int lost_engines;

static void
count_lost(struct ipc_peer *peer, const struct err *why)
{
	(void)peer;
	assert_non_null(strstr(why->text, "does not read"));
	lost_engines++;
}

static void
queue_has_a_ceiling(void **state)
{
	static const uint8_t record[16384];
	struct ends e;

	(void)state;
	lost_engines = 0;
	ends_open(&e, count_lost);
	ipc_peer_pause(e.api, true);
	for (int i = 0; i < 600; i++)
		IPC_SEND(e.engine, 1, AUDIT_ROW, audit_row,
			{.record = view_of(record, sizeof(record))});
	turns(&e, 2);
	assert_int_equal(lost_engines, 1);
	ipc_peer_close(e.engine);
	ipc_peer_close(e.api);
	loop_free(e.loop);
}

static void
queued_messages_arrive_in_order(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, never_lost);
	ipc_peer_pause(e.api, true);
	for (int i = 0; i < 2000; i++)
		IPC_SEND(e.engine, (uint64_t)i, END, end, {.more = false});
	ipc_peer_pause(e.api, false);
	turns(&e, 400);
	assert_int_equal(e.seen.lists, 2000);
	assert_int_equal(e.seen.lost, 0);
	assert_int_equal(e.engine->queued_bytes, 0);
	ipc_peer_close(e.engine);
	ipc_peer_close(e.api);
	loop_free(e.loop);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message_and_descriptor),
		cmocka_unit_test(broken_peers_are_lost),
		cmocka_unit_test(queue_has_a_ceiling),
		cmocka_unit_test(queued_messages_arrive_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
