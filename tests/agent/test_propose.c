/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of a sandbox ask for actions: the real demilune-propose and programs that write to the socket themselves, the real agent
 * and relay, and this process as the engine, which sees canonical bytes or nothing.
 */
#include "world.h"

#include "lib/base/propose_bounds.h"
#include "lib/canon/read.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct world world;

#define auto_result __attribute__((cleanup(result_done)))

/* Where world.c puts it. */
#define PROPOSE "/tmp/demilune-propose"

/* Begins a shell command whose output is kept by the relay and read at the end. */
static void
begin(const char *command, struct buf *room, struct result *r)
{
	struct msg_job_start m = start_shell(&world, room, command);

	world_begin(&world, &m, true, r);
}

/* The next PROPOSE that reaches the engine; its tag goes to *ret_tag. */
static bool
asked(uint64_t *ret_tag, bool *ret_read, char *ret_bytes, size_t max, unsigned ms)
{
	struct ipc_msg in;
	struct msg_propose m;
	struct err err;

	if (!engine_next(&world, &in, ms))
		return false;
	assert_int_equal(in.type, MSG_PROPOSE);
	assert_int_equal(msg_propose_get(in.body, &m, &err), 0);
	assert_int_equal(canon_check(m.proposal, true, &err), 0);
	assert_true(m.proposal.n < max);
	memcpy(ret_bytes, m.proposal.p, m.proposal.n);
	ret_bytes[m.proposal.n] = '\0';
	*ret_tag = in.tag;
	*ret_read = m.read;
	ipc_msg_done(&in);
	return true;
}

static void
answer(uint64_t tag, const struct msg_proposed *m)
{
	auto_buf struct buf body, packed;
	struct err err;

	buf_init(&body, IPC_MAX);
	buf_init(&packed, IPC_MAX);
	msg_proposed_put(&body, m);
	ipc_pack(&packed, MSG_PROPOSED, tag, buf_view(&body));
	assert_int_equal(ipc_write(world.engine, buf_view(&packed), NULL, 0, &err), 0);
}

static void
assert_output(const struct result *r, const char *out, const char *err)
{
	assert_string_equal((const char *)r->out.p, out);
	if (err != NULL)
		assert_non_null(strstr((const char *)r->err.p, err));
}

static void
finish(struct result *r)
{
	assert_true(world_until(&world, r, is_complete, 20000));
	buf_add_byte(&r->out, 0);
	buf_add_byte(&r->err, 0);
}

static void
an_id_and_nothing_else(void **state)
{
	auto_buf struct buf room = {.max = 8192};
	auto_result struct result r;
	char bytes[4096];
	uint64_t tag;
	bool read;
	struct id id = {.b = {1, 2, 3}};
	char text[ID_TEXT + 1];

	(void)state;
	begin(PROPOSE
		" refund '{ \"order_id\": \"48221\", \"cents\": 4200 }' --note 'they \"said\" so'",
		&room, &r);
	assert_true(asked(&tag, &read, bytes, sizeof(bytes), 10000));
	assert_false(read);
	assert_string_equal(bytes, "{\"arguments\":{\"cents\":4200,\"order_id\":\"48221\"},"
				   "\"note\":\"they \\\"said\\\" so\",\"operation\":\"refund\"}");
	answer(tag, &(struct msg_proposed){.proposal = id});
	finish(&r);
	id_text(&id, ID_PROPOSAL, text);
	(void)strcat(text, "\n");
	assert_output(&r, text, "");
	assert_int_equal(r.end.code, 0);
}

static void
the_answer_of_a_read(void **state)
{
	auto_buf struct buf room = {.max = 8192};
	auto_result struct result r;
	char bytes[4096];
	uint64_t tag;
	bool read;

	(void)state;
	begin("ln -s " PROPOSE " /tmp/demilune-read; echo '{\"order_id\":\"1\"}' | "
	      "/tmp/demilune-read order_status -",
		&room, &r);
	assert_true(asked(&tag, &read, bytes, sizeof(bytes), 10000));
	assert_true(read);
	answer(tag, &(struct msg_proposed){.answer = view_str("{\"status\":\"paid\"}")});
	finish(&r);
	assert_output(&r, "{\"status\":\"paid\"}\n", "");
}

static void
a_refusal_says_why(void **state)
{
	auto_buf struct buf room = {.max = 8192};
	auto_result struct result r;
	char bytes[4096];
	uint64_t tag;
	bool read;

	(void)state;
	begin(PROPOSE " refund '{}'", &room, &r);
	assert_true(asked(&tag, &read, bytes, sizeof(bytes), 10000));
	answer(tag, &(struct msg_proposed){
			    .denial = DENIAL_NO_GRANT, .text = view_str("no \"grant\"")});
	finish(&r);
	assert_output(&r, "",
		"{\"code\":\"denied\",\"denial\":\"no_grant\",\"error\":\"no \\\"grant\\\"\"}");
	assert_int_equal(r.end.code, 1);
}

/* What is not exactly JSON of the profile never reaches the engine. */
static void
malformed_is_answered_by_the_relay(void **state)
{
	static const struct {
		const char *arguments, *says;
	} cases[] = {
		{"'{\"a\":1,\"a\":2}'", "twice"},       /* A1 */
		{"'{\"a\":1,\"\\u0061\":2}'", "twice"}, /* A1 */
		{"'{\"cents\":42.00}'", "fraction"},    /* A3 */
		{"'{\"cents\":4.2e1}'", "fraction"},    /* A3 */
		{"'{\"id\":9007199254740993}'", ""},    /* A4 */
		{"'{} {}'", ""},                        /* A14 */
		{"'{},\"approved\":true'", "approved"}, /* the shell of the request is as strict */
		{"'[1]'", "arguments"}, {"\"$(printf '\\377')\"", ""},
		{"\"$(head -c 100000 /dev/zero | tr '\\0' '[')\"", "32 KiB"}, /* A11 */
		{"\"$(head -c 30000 /dev/zero | tr '\\0' '[')\"", ""},        /* A11 */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_buf struct buf room = {.max = 8192};
		auto_result struct result r;
		char command[512];
		struct ipc_msg in;

		(void)snprintf(command, sizeof(command), PROPOSE " refund %s", cases[i].arguments);
		begin(command, &room, &r);
		assert_true(world_until(
			&world, &r, is_complete, 20000)); /* fails when a PROPOSE comes instead */
		buf_add_byte(&r.err, 0);
		if (r.end.code != 1 || strstr((const char *)r.err.p, cases[i].says) == NULL)
			fail_msg("case %zu: %d %s", i, r.end.code, (const char *)r.err.p);
		assert_false(engine_next(&world, &in, 50));
	}
}

/* Any program may use the sockets; one that dies, says nothing or says too much is no harm to the next. */
static void
sockets_of_programs(void **state)
{
	auto_buf struct buf room = {.max = 8192};
	auto_result struct result r;
	char bytes[4096];
	uint64_t tag;
	bool read;

	(void)state;
	begin("python3 -c '\n"
	      "import socket\n"
	      "def ask(text, end=True):\n"
	      "    s = socket.socket(socket.AF_UNIX)\n"
	      "    s.connect(\"/run/demilune/propose\")\n"
	      "    s.sendall(text)\n"
	      "    if end: s.shutdown(socket.SHUT_WR)\n"
	      "    return s\n"
	      "silent = [ask(b\"{\", end=False) for _ in range(7)]\n"
	      "print(ask(b\"\").recv(999).decode(), end=\"\")\n"
	      "print(ask(b\"x\" * 40000).recv(999).decode(), end=\"\")\n"
	      "ask(b\"{\\\"operation\\\":\\\"reply\\\",\\\"arguments\\\":{}}\").close()\n"
	      "for s in silent: s.close()\n"
	      "print(ask(b\"{\\\"operation\\\":\\\"reply\\\",\\\"arguments\\\":{}}\").recv(999)."
	      "decode(), end=\"\")\n"
	      "'; ls -ln /run/demilune | grep -v ^[td] | cut -c1-10; rm -f /run/demilune/propose; "
	      "test -S /run/demilune/propose && echo kept",
		&room, &r);
	for (int i = 0; i < 2; i++) {
		assert_true(asked(&tag, &read, bytes, sizeof(bytes), 10000));
		answer(tag,
			&(struct msg_proposed){.denial = DENIAL_BUDGET, .text = view_str("no")});
	}
	finish(&r);
	assert_output(&r,
		"{\"code\":\"bad_request\",\"error\":\"the request is empty\"}\n"
		"{\"code\":\"too_large\",\"error\":\"a request has at most 32 KiB\"}\n"
		"{\"code\":\"denied\",\"denial\":\"budget\",\"error\":\"no\"}\n"
		"srw-rw-rw-\nsrw-rw-rw-\nkept\n",
		NULL);
}

/* More than PROPOSE_LIVE_MAX at once wait inside; each gets its own answer. */
static void
many_at_once(void **state)
{
	auto_buf struct buf room = {.max = 8192};
	auto_result struct result r;
	uint64_t tags[PROPOSE_LIVE_MAX], tag;
	char bytes[4096];
	bool read;
	unsigned n = 0;

	(void)state;
	begin("for i in $(seq 1 40); do " PROPOSE " refund \"{\\\"n\\\":$i}\" & done; wait", &room,
		&r);
	while (n < 40) {
		unsigned now = 0;

		while (now < PROPOSE_LIVE_MAX && n + now < 40) {
			assert_true(asked(&tag, &read, bytes, sizeof(bytes), 10000));
			tags[now++] = tag;
		}
		/* No further one while these have no answer. */
		if (n + now < 40)
			assert_false(asked(&tag, &read, bytes, sizeof(bytes), 30));
		while (now > 0) {
			answer(tags[--now],
				&(struct msg_proposed){.proposal = {.b = {(uint8_t)n}}});
			n++;
		}
	}
	finish(&r);
	assert_int_equal(r.out.n, 40 * (ID_DIGITS + 4) + 1);
}

/* An engine that answers what nobody asked loses its relay's trust, as any peer that breaks the table. */
static void
an_answer_to_nobody(void **state)
{
	(void)state;
	answer(77, &(struct msg_proposed){0});
	assert_int_equal(
		relay_wait(&world, 300), -1); /* the relay lives: the engine is the lost one */
}

static int
open_world(void **state)
{
	const struct world_options o = {0};

	(void)state;
	world_start(&world, &o);
	world_open(&world);
	return 0;
}

static int
close_world(void **state)
{
	(void)state;
	world_stop(&world);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_id_and_nothing_else),
		cmocka_unit_test(the_answer_of_a_read),
		cmocka_unit_test(a_refusal_says_why),
		cmocka_unit_test(malformed_is_answered_by_the_relay),
		cmocka_unit_test(sockets_of_programs),
		cmocka_unit_test(many_at_once),
		cmocka_unit_test(an_answer_to_nobody),
	};

	return geteuid() == 0 ? cmocka_run_group_tests(tests, open_world, close_world) : 77;
}
