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

struct answerer {
	int questions, answers;
	size_t most_queued;
};

/* Each question has an answer of 64 records. */
static int
on_health(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_health *m, struct err *err)
{
	static const uint8_t record[4096];
	struct answerer *a = peer->owner;

	(void)m, (void)err;
	a->questions++;
	for (int i = 0; i < 64; i++)
		IPC_SEND(peer, in->tag, AUDIT_ROW, audit_row,
			{.record = view_of(record, sizeof(record))});
	if (peer->queued_bytes > a->most_queued)
		a->most_queued = peer->queued_bytes;
	return 0;
}
IPC_HANDLER(health, on_health)

static int
on_record(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_audit_row *m, struct err *err)
{
	(void)in, (void)m, (void)err;
	((struct answerer *)peer->owner)->answers++;
	return 0;
}
IPC_HANDLER(audit_row, on_record)

/*
 * Both directions full at once: the one end has more to ask and the other more to answer than sockets hold. The end that
 * answers stops reading at its mark; the other reads always; all is asked and answered, and the queue stays small.
 */
static void
both_directions_full(void **state)
{
	enum { QUESTIONS = 1000, MARK = 1 << 20, ANSWER = 64 * 4300 };
	static const struct ipc_row asked[] = {IPC_ROW(HEALTH, IN_ANY, on_health)};
	static const struct ipc_row told[] = {IPC_ROW(AUDIT_ROW, IN_ANY, on_record)};
	struct ev_loop *loop = loop_new();
	struct answerer a = {0};
	struct err err = {0};
	struct ipc_peer *engine, *api;
	int fds[2];

	(void)state;
	assert_int_equal(ipc_pair(fds, &err), 0);
	engine = ipc_peer_new(loop, fds[0], EDGE_API_ENGINE, ROOM_ENGINE, asked, ARRAY_LEN(asked),
		&a, never_lost, &err);
	api = ipc_peer_new(loop, fds[1], EDGE_API_ENGINE, ROOM_API, told, ARRAY_LEN(told), &a,
		never_lost, &err);
	engine->pause_at_bytes = MARK;
	for (int i = 0; i < QUESTIONS; i++)
		IPC_SEND(api, 1, HEALTH, health, {0});
	assert_true(api->queued_bytes > 0);
	for (int i = 0; i < 1000000 && a.answers < 64 * QUESTIONS; i++)
		(void)ev_run(loop, EVRUN_NOWAIT);
	assert_int_equal(a.questions, QUESTIONS);
	assert_int_equal(a.answers, 64 * QUESTIONS);
	assert_true(a.most_queued > MARK && a.most_queued < MARK + ANSWER);
	ipc_peer_close(engine);
	ipc_peer_close(api);
	loop_free(loop);
}

/* What the queue paused, the room does not resume, and the other way round. */
static void
two_reasons_to_pause(void **state)
{
	static const uint8_t record[16384];
	struct ends e;

	(void)state;
	ends_open(&e, never_lost);
	e.engine->pause_at_bytes = 65536;
	ipc_peer_pause(e.api, true);
	for (int i = 0; i < 100; i++)
		IPC_SEND(e.engine, 1, AUDIT_ROW, audit_row,
			{.record = view_of(record, sizeof(record))});
	assert_true(e.engine->full && !ev_is_active(&e.engine->readable));
	ipc_peer_pause(e.engine, true);
	ipc_peer_pause(e.engine, false);
	assert_false(ev_is_active(&e.engine->readable));
	ipc_peer_pause(e.engine, true);
	e.engine->queued_bytes = 0;
	e.engine->full = false;
	ipc_peer_pause(e.engine, true);
	assert_false(ev_is_active(&e.engine->readable));
	ipc_peer_pause(e.engine, false);
	assert_true(ev_is_active(&e.engine->readable));
	ipc_peer_close(e.engine);
	ipc_peer_close(e.api);
	loop_free(e.loop);
}

/* A fault is told even when the room stops reading in the same turn. */
static void
fault_is_told_through_a_pause(void **state)
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
	ipc_peer_pause(e.engine, true);
	turns(&e, 2);
	assert_int_equal(lost_engines, 1);
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
		cmocka_unit_test(both_directions_full),
		cmocka_unit_test(two_reasons_to_pause),
		cmocka_unit_test(fault_is_told_through_a_pause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
