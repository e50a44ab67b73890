/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sits where the api sits (descriptor 3 is its edge to the engine) and times what the engine, the supervisor,
 * the relay and the agent do without HTTP: create to first result, further results, kill with proof.
 * bench.py starts the daemon with this program in the api's place. Prints one JSON line per measurement on the log.
 *
 *     DEMILUNE_BENCH="rounds=200 execs=20 live=0"
 */
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/num.h"
#include "lib/ipc/datagram.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

enum { WAIT_MS = 20000 };

static uint8_t room[IPC_MAX];
static uint64_t next_tag = 1;

static void
say(enum msg_type type, uint64_t tag, const struct buf *body)
{
	auto_buf struct buf packed;
	struct err err = {0};

	buf_init(&packed, IPC_MAX);
	ipc_pack(&packed, type, tag, buf_view(body));
	if (ipc_write(FD_API_ENGINE, buf_view(&packed), NULL, 0, &err) < 0)
		log_exit(1, "engine: %s", err.text);
}

/* Waits for the answer to `tag` and gives its type; a refusal ends the run. */
static enum msg_type
hear(uint64_t tag, struct ipc_msg *ret)
{
	for (;;) {
		struct pollfd p = {.fd = FD_API_ENGINE, .events = POLLIN};
		struct err err = {0};
		int r = ipc_read(
			FD_API_ENGINE, EDGE_API_ENGINE, ROOM_ENGINE, room, sizeof(room), ret, &err);

		if (r == -EAGAIN) {
			if (poll(&p, 1, WAIT_MS) <= 0)
				log_exit(1, "the engine does not answer");
			continue;
		}
		if (r < 0)
			log_exit(1, "engine: %s", err.text);
		if (ret->type == MSG_REFUSED) {
			struct msg_refused m;

			if (msg_refused_get(ret->body, &m, &err) == 0)
				log_exit(1, "refused: %.*s", VIEW_ARGS(m.text));
		}
		if (ret->tag == tag)
			return ret->type;
		ipc_msg_done(ret);
	}
}

static const struct caller root = {.kind = CALLER_KIND_LOCAL, .local = 0};

/* The engine takes nobody's word for who is root: bench.py connects, once it reads that we wait. */
static void
root_comes(void)
{
	struct pollfd p = {.fd = FD_API_LOCAL, .events = POLLIN};
	struct msg_local_open m = {.local = root.local};
	auto_buf struct buf body, packed;
	struct err err = {0};
	auto_fd int fd = -1;

	(void)printf("{\"what\": \"listening\"}\n");
	if (poll(&p, 1, WAIT_MS) <= 0)
		log_exit(1, "nobody connects");
	fd = accept4(FD_API_LOCAL, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		log_exit(1, "cannot accept");
	buf_init(&body, IPC_MAX);
	buf_init(&packed, IPC_MAX);
	msg_local_open_put(&body, &m);
	ipc_pack(&packed, MSG_LOCAL_OPEN, 0, buf_view(&body));
	if (ipc_write(FD_API_ENGINE, buf_view(&packed), &fd, 1, &err) < 0)
		log_exit(1, "engine: %s", err.text);
}

static struct id
create(void)
{
	struct msg_sandbox_create m = {.caller = root,
		.tenant = view_str("bench"),
		.template = view_str("python"),
		.request_id = view_str("bench")};
	struct msg_sandbox_row row;
	struct ipc_msg in;
	struct err err = {0};
	uint64_t tag = next_tag++;
	auto_buf struct buf body;

	buf_init(&body, IPC_MAX);
	msg_sandbox_create_put(&body, &m);
	say(MSG_SANDBOX_CREATE, tag, &body);
	(void)hear(tag, &in);
	if (msg_sandbox_row_get(in.body, &row, &err) < 0)
		log_exit(1, "%s", err.text);
	return row.sandbox;
}

static void
run_true(struct id sandbox)
{
	struct msg_job_run m = {.caller = root,
		.sandbox = sandbox,
		.kind = JOB_KIND_EXEC,
		.uid = 10001,
		.timeout_ms = 10000,
		.keep_bytes = 65536,
		.path = view_str("/"),
		.argv = view_of("/bin/true", 10),
		.request_id = view_str("bench")};
	struct ipc_msg in;
	uint64_t tag = next_tag++;
	auto_buf struct buf body;

	buf_init(&body, IPC_MAX);
	msg_job_run_put(&body, &m);
	say(MSG_JOB_RUN, tag, &body);
	while (hear(tag, &in) != MSG_JOB_ROW)
		ipc_msg_done(&in); /* JOB_OPENED: nobody reads the output */
}

static void
kill_sandbox(struct id sandbox)
{
	struct msg_sandbox_kill m = {.caller = root, .sandbox = sandbox};
	struct msg_sandbox_row row;
	struct ipc_msg in;
	struct err err = {0};
	uint64_t tag = next_tag++;
	auto_buf struct buf body;

	buf_init(&body, IPC_MAX);
	msg_sandbox_kill_put(&body, &m);
	say(MSG_SANDBOX_KILL, tag, &body);
	(void)hear(tag, &in);
	if (msg_sandbox_row_get(in.body, &row, &err) < 0)
		log_exit(1, "%s", err.text);
	if (row.proof.processes + row.proof.cgroups + row.proof.mounts + row.proof.namespaces > 0)
		log_exit(1, "something was left of a sandbox");
}

static uint64_t
setting(const char *name, uint64_t otherwise)
{
	const char *all = getenv("DEMILUNE_BENCH"), *at = all == NULL ? NULL : strstr(all, name);
	uint64_t value;

	if (at == NULL)
		return otherwise;
	at += strlen(name);
	return num_u64(view_of(at, strspn(at, "0123456789")), 100000, &value) < 0 ? otherwise
										  : value;
}

static void
tell(const char *what, uint64_t began_us)
{
	(void)printf("{\"what\": \"%s\", \"us\": %llu}\n", what,
		(unsigned long long)(clock_mono_us() - began_us));
}

int
main(void)
{
	uint64_t rounds = setting("rounds=", 200), execs = setting("execs=", 20),
		 live = setting("live=", 0);

	log_name("bench");
	(void)setvbuf(
		stdout, NULL, _IOLBF, 0); /* whole lines, between those of the other processes */
	root_comes();
	kill_sandbox(create()); /* the template is mounted and the caches are warm */
	for (uint64_t i = 0; i < live; i++)
		(void)create();
	for (uint64_t i = 0; i < rounds; i++) {
		uint64_t began = clock_mono_us();
		struct id sandbox = create();

		tell("create", began);
		run_true(sandbox);
		tell("create_first_result", began);
		for (uint64_t n = 0; n < execs; n++) {
			uint64_t exec_began = clock_mono_us();

			run_true(sandbox);
			tell("exec", exec_began);
		}
		began = clock_mono_us();
		kill_sandbox(sandbox);
		tell("kill_with_proof", began);
	}
	(void)printf("{\"what\": \"end\"}\n");
	for (;;)
		(void)poll(NULL, 0, 1000); /* the supervisor ends us */
}
