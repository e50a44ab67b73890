/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers that break the protocol: each message from a wrong sender, in a wrong state, twice, short, long, with another
 * number of descriptors, or about something that is not theirs. That peer is lost, and only that.
 */
#include "play.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static int
setup(void **state)
{
	static struct play play;

	play_open(&play);
	play_start(&play);
	*state = &play;
	return 0;
}

static int
teardown(void **state)
{
	play_close(*state);
	return 0;
}

/* The engine lives and answers. */
static void
check_well(struct play *p, const struct id *sandbox)
{
	ASK(p, SANDBOX_GET, sandbox_get, {.caller = as_root, .sandbox = *sandbox});
	ANSWER(p, SANDBOX_ROW, sandbox_row, row);
	assert_int_equal(row.state, SANDBOX_STATE_RUNNING);
}

/* A datagram by hand: type, number of descriptors in the header, body of n zeros, descriptors beside. */
static void
raw(int fd, unsigned type, unsigned nfds, size_t n, unsigned passed)
{
	static uint8_t bytes[IPC_MAX];
	struct err err;
	struct buf b;

	buf_init(&b, IPC_MAX + IPC_HEADER_BYTES);
	buf_add_byte(&b, (uint8_t)(type >> 8));
	buf_add_byte(&b, (uint8_t)type);
	buf_add_byte(&b, (uint8_t)(nfds >> 8));
	buf_add_byte(&b, (uint8_t)nfds);
	for (unsigned i = 0; i < 4; i++)
		buf_add_byte(&b, (uint8_t)(n >> (24 - 8 * i)));
	buf_add(&b, bytes, 8 + n);
	assert_int_equal(ipc_write(fd, buf_view(&b), (const int[]){0, 0}, passed, &err), 0);
	buf_done(&b);
}

/* A relay sends this right after it is there; its sandbox ends, another one is well. */
static void
relay_case(
	struct play *p, const struct id *other, void (*say)(struct play *, int), const char *what)
{
	struct id id;
	int relay = play_create(p, &id, NULL);

	say(p, relay);
	play_want(p, p->supervisor, MSG_KILL);
	struct msg_kill kill;
	play_decoded(msg_kill_get(p->in.body, &kill, &(struct err){0}), what);
	assert_true(id_eq(&kill.sandbox, &id));
	assert_int_equal(kill.reason, SANDBOX_REASON_PROTOCOL);
	play_want_closed(p, relay);
	check_well(p, other);
	play_gone(p, &id, SANDBOX_REASON_KILLED);
	(void)close(relay);
}

static unsigned relay_type;

static void
say_type(struct play *p, int relay)
{
	(void)p;
	raw(relay, relay_type, relay_type < MSG_MAX ? msg_info[relay_type].fds : 0,
		relay_type < MSG_MAX && msg_info[relay_type].fixed ? msg_info[relay_type].body_max
								   : 0,
		relay_type < MSG_MAX ? msg_info[relay_type].fds : 0);
}

static void
say_ready_again(struct play *p, int relay)
{
	(void)p;
	SAY(relay, RELAY_READY, relay_ready, {.agent_version = 1});
}

static void
say_unknown_job(struct play *p, int relay)
{
	(void)p;
	SAY(relay, JOB_ENDED, job_ended, {.job = {{1}}});
}

static void
say_short(struct play *p, int relay)
{
	(void)p;
	raw(relay, MSG_JOB_ENDED, 0, msg_info[MSG_JOB_ENDED].body_max - 1, 0);
}

static void
say_long(struct play *p, int relay)
{
	(void)p;
	raw(relay, MSG_JOB_ENDED, 0, msg_info[MSG_JOB_ENDED].body_max + 1, 0);
}

static void
say_descriptor(struct play *p, int relay)
{
	(void)p;
	raw(relay, MSG_JOB_ENDED, 0, msg_info[MSG_JOB_ENDED].body_max, 1);
}

static void
say_two_descriptors(struct play *p, int relay)
{
	(void)p;
	raw(relay, MSG_JOB_ENDED, 2, msg_info[MSG_JOB_ENDED].body_max, 2);
}

static void
say_nothing(struct play *p, int relay)
{
	(void)p;
	assert_int_equal(send(relay, "x", 1, 0), 1);
}

static void
test_relays(void **state)
{
	struct play *p = *state;
	struct id other;
	int keep = play_create(p, &other, NULL);

	relay_case(p, &other, say_ready_again, "RELAY_READY twice");
	relay_case(p, &other, say_unknown_job, "JOB_ENDED of no job");
	relay_case(p, &other, say_short, "short");
	relay_case(p, &other, say_long, "long");
	relay_case(p, &other, say_descriptor, "a descriptor");
	relay_case(p, &other, say_two_descriptors, "two descriptors");
	relay_case(p, &other, say_nothing, "a byte");
	/* Every type there is, but those that a relay may say now. */
	for (relay_type = 0; relay_type <= MSG_MAX; relay_type++)
		if (relay_type != MSG_RELAY_LOST)
			relay_case(p, &other, say_type, "a type");
	(void)close(keep);
}

/* JOB_ENDED twice for one job: the second is a lie. */
static void
test_ended_twice(void **state)
{
	struct play *p = *state;
	struct id id, job;
	int relay = play_create(p, &id, NULL);

	play_run(p, relay, &id, &job);
	play_end_job(p, relay, &job, 1);
	play_end_job(p, relay, &job, 0);
	WANT(p, p->supervisor, USAGE_ASK, usage_ask, ask);
	WANT(p, p->supervisor, KILL, kill, kill);
	assert_int_equal(kill.reason, SANDBOX_REASON_PROTOCOL);
	play_gone(p, &id, SANDBOX_REASON_KILLED);
	/* What it said first stands. */
	ANSWER(p, JOB_ROW, job_row, row);
	assert_int_equal(row.reason, JOB_REASON_EXITED);
	assert_int_equal(row.code, 1);
	(void)close(relay);
}

/* When its end is recorded, this is the reason. */
static void
play_want_row(struct play *p, const struct id *sandbox, enum sandbox_reason reason)
{
	for (;;) {
		ASK(p, SANDBOX_GET, sandbox_get, {.caller = as_root, .sandbox = *sandbox});
		ANSWER(p, SANDBOX_ROW, sandbox_row, row);
		if (row.state == SANDBOX_STATE_STOPPING)
			continue;
		assert_int_equal(row.reason, reason);
		return;
	}
}

/* The relay goes away, or says that its agent did. */
static void
test_lost(void **state)
{
	struct play *p = *state;
	struct id id, job;
	int relay = play_create(p, &id, NULL);

	play_run(p, relay, &id, &job);
	(void)close(relay);
	WANT(p, p->supervisor, KILL, kill, kill);
	assert_int_equal(kill.reason, SANDBOX_REASON_RELAY_LOST);
	play_gone(p, &id, kill.reason);
	ANSWER(p, JOB_ROW, job_row, row);
	assert_int_equal(row.reason, JOB_REASON_AGENT_LOST);

	relay = play_create(p, &id, NULL);
	play_run(p, relay, &id, &job);
	SAY(relay, RELAY_LOST, relay_lost, {.code = -71, .text = "the agent lied"});
	(void)close(relay);
	WANT(p, p->supervisor, KILL, kill, kill2);
	assert_int_equal(kill2.reason, SANDBOX_REASON_AGENT_LOST);
	play_gone(p, &id, kill2.reason);
	ANSWER(p, JOB_ROW, job_row, row2);
	assert_int_equal(row2.reason, JOB_REASON_AGENT_LOST);

	/* It looked like a lost relay, and the supervisor knows why. */
	relay = play_create(p, &id, NULL);
	(void)close(relay);
	WANT(p, p->supervisor, KILL, kill, kill3);
	play_gone(p, &id, SANDBOX_REASON_TTL);
	play_want_row(p, &id, SANDBOX_REASON_TTL);
}

static void
api_case(struct play *p, const struct id *sandbox, unsigned type, unsigned nfds, size_t n,
	unsigned passed)
{
	raw(p->api, type, nfds, n, passed);
	play_want_closed(p, p->api);
	play_api_new(p);
	check_well(p, sandbox);
}

static void
test_api(void **state)
{
	struct play *p = *state;
	struct id id, job;
	int relay = play_create(p, &id, NULL);

	for (unsigned type = 0; type <= MSG_MAX; type++) {
		bool own = type < MSG_MAX && msg_info[type].edge == EDGE_API_ENGINE &&
			   msg_info[type].from == ROOM_API;
		size_t max = type < MSG_MAX ? msg_info[type].body_max : 0;

		if (!own) {
			api_case(p, &id, type, 0, 0, 0);
			continue;
		}
		if (max > 0)
			api_case(
				p, &id, type, 0, msg_info[type].fixed ? max - 1 : 1, 0); /* short */
		api_case(p, &id, type, 0, max + 1, 0);                                   /* long */
		api_case(p, &id, type, 1, max < 4096 ? max : 4096, 1); /* a descriptor */
	}
	/* A running job outlives the api that asked for it, and is heard of by the next one. */
	play_run(p, relay, &id, &job);
	play_api_new(p);
	check_well(p, &id);
	ASK(p, JOB_ATTACH, job_attach, {.caller = as_root, .sandbox = id, .job = job});
	WANT(p, relay, JOB_SESSION, job_session, session);
	ANSWER(p, JOB_OPENED, job_opened, opened);
	play_end_job(p, relay, &job, 0);
	ANSWER(p, JOB_ROW, job_row, row);
	play_want_silence(p, p->api, 50);
	(void)close(relay);
}

/* The engine goes on without its broker, and takes the next one. */
static void
broker_case(struct play *p, const struct id *sandbox, unsigned type, unsigned nfds, size_t n,
	unsigned passed)
{
	raw(p->broker, type, nfds, n, passed);
	play_want_closed(p, p->broker);
	play_broker_lost(p);
	check_well(p, sandbox);
	play_broker(p, true);
}

static void
test_broker(void **state)
{
	struct play *p = *state;
	struct id id;
	int relay = play_create(p, &id, NULL);

	play_broker(p, false);
	for (unsigned type = 0; type <= MSG_MAX; type++) {
		bool own = type < MSG_MAX && msg_info[type].edge == EDGE_ENGINE_BROKER &&
			   msg_info[type].from == ROOM_BROKER;
		size_t max = type < MSG_MAX ? msg_info[type].body_max : 0;

		if (!own) {
			broker_case(p, &id, type, 0, 0, 0);
			continue;
		}
		if (max > 0)
			broker_case(p, &id, type, 0, msg_info[type].fixed ? max - 1 : 1, 0);
		broker_case(p, &id, type, 0, max + 1, 0);
		broker_case(p, &id, type, 1, max < 4096 ? max : 4096, 1);
	}
	/* Ready twice; with other operations; an answer before it is ready, and to nothing. */
	SAY(p->broker, BROKER_READY, broker_ready, {.audit_key = view_str("")});
	play_want_closed(p, p->broker);
	play_broker_lost(p);
	play_broker(p, true);
	struct msg_broker_ready other = {.epoch = 1};
	other.catalogue[0] = 1;
	play_broker_lost(p);
	play_broker(p, true);
	SAY(p->broker, BROKER_READY, broker_ready, other);
	play_want_closed(p, p->broker);
	play_broker_lost(p);
	play_broker(p, true);
	SAY_TAG(p->broker, 1, BROKER_DONE, broker_done, -1, {0});
	play_want_closed(p, p->broker);
	check_well(p, &id);
	(void)close(relay);
}

/* The engine cannot do without a supervisor that speaks the truth: it ends, and the next one goes on. */
static void
supervisor_case(struct play *p, unsigned type, unsigned nfds, size_t n, unsigned passed)
{
	int status;

	raw(p->supervisor, type, nfds, n, passed);
	status = play_wait(p);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 2)
		fail_msg("message %u: status %x", type, (unsigned)status);
	play_start(p);
}

static void
test_supervisor(void **state)
{
	struct play *p = *state;

	for (unsigned type = 0; type <= MSG_MAX; type++) {
		bool own = type < MSG_MAX && msg_info[type].edge == EDGE_ENGINE_SUPERVISOR &&
			   msg_info[type].from == ROOM_SUPERVISOR;
		size_t n = own ? msg_info[type].body_max : 0;
		unsigned fds = own ? msg_info[type].fds : 0;

		if (!own) {
			supervisor_case(p, type, 0, 0, 0);
			continue;
		}
		supervisor_case(p, type, fds, n + 1, fds);
		supervisor_case(p, type, 1 - fds, n, 1 - fds);
		/* In a wrong state (HELD after HELD_END, SETTINGS twice), or about a sandbox that is not there. */
		if (type != MSG_API_EDGE && type != MSG_BROKER_EDGE && type != MSG_TEMPLATE_READY &&
			type != MSG_TEMPLATE_FAILED && type != MSG_GONE && type != MSG_STOPPING &&
			type != MSG_GATEWAY_EDGE)
			supervisor_case(p, type, fds, n, fds);
	}
}

/* Messages that are right one time and wrong the other. */
static void
test_supervisor_states(void **state)
{
	struct play *p = *state;
	struct id id;
	int relay = play_create(p, &id, NULL);
	struct buf b;

	/* SPAWNED twice. */
	struct msg_spawned m = {.sandbox = id, .facts = play_facts(p, &p->settings.default_limits)};
	buf_init(&b, IPC_MAX);
	msg_spawned_put(&b, &m);
	play_send(p->supervisor, MSG_SPAWNED, 0, &b, relay);
	buf_done(&b);
	assert_int_equal(WEXITSTATUS(play_wait(p)), 2);
	/* Before SETTINGS and before HELD_END. */
	play_launch(p);
	SAY(p->supervisor, USAGE, usage, {0});
	assert_int_equal(WEXITSTATUS(play_wait(p)), 2);
	play_launch(p);
	SAY(p->supervisor, SETTINGS, settings, {.settings = p->settings});
	assert_int_equal(WEXITSTATUS(play_wait(p)), 2);
	/* HELD twice. */
	play_launch(p);
	for (int i = 0; i < 2; i++) {
		int pair[2];
		struct err err;

		assert_int_equal(ipc_pair(pair, &err), 0);
		SAY_FD(p->supervisor, HELD, held, pair[1], {.sandbox = {{1}}});
		(void)close(pair[0]);
		(void)close(pair[1]);
	}
	WANT(p, p->supervisor, KILL, kill,
		kill); /* unknown ones are ended, however often they are named */
	play_kill(p);
	play_start(p);
	(void)close(relay);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(relays),
		TEST(ended_twice),
		TEST(lost),
		TEST(api),
		TEST(broker),
		TEST(supervisor),
		TEST(supervisor_states),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
