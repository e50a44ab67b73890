/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each row of policy.def against the real engine: one measured value is wrong, and the sandbox is refused,
 * killed and recorded, and never gets a job. The same after a restart, with HELD.
 */
#include "play.h"

#include "engine/policy.h"

#include <setjmp.h>
#include <stdarg.h>
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

/* Breaks one fact. uid_shared is not a field: its sandbox takes the uids of another. */
static void
break_fact(struct facts *f, enum policy_fact fact, uint32_t uids_of_another)
{
	switch (fact) {
#define BREAK(name, change) \
	case POLICY_##name: \
		change;     \
		return
		BREAK(boundary, f->boundary = BOUNDARY_MICROVM);
		BREAK(host_pid, f->host_pid = 1);
		BREAK(uid_base, f->uid_base = 1000);
		BREAK(uid_count, f->uid_count = 4096);
		BREAK(uid_shared, f->uid_base = f->userns_owner = uids_of_another);
		BREAK(namespaces_own, f->namespaces_own &= ~8U);
		BREAK(namespaces_owner_host, f->namespaces_owner_host &= ~2U);
		BREAK(cap_permitted, f->cap_permitted |= 1 << 21);
		BREAK(cap_effective, f->cap_effective |= 1 << 21);
		BREAK(cap_bounding, f->cap_bounding |= 1 << 21);
		BREAK(cap_inheritable, f->cap_inheritable = 1);
		BREAK(userns_owner, f->userns_owner = 0);
		BREAK(pending_signals, f->pending_signals = UINT32_MAX);
		BREAK(cap_ambient, f->cap_ambient = 1);
		BREAK(no_new_privs, f->no_new_privs = 0);
		BREAK(seccomp_mode, f->seccomp_mode = 0);
		BREAK(root_read_only, f->root_read_only = 0);
		BREAK(mounts_unexpected, f->mounts_unexpected = 1);
		BREAK(mounts_without_nosuid, f->mounts_without_nosuid = 1);
		BREAK(mounts_without_nodev, f->mounts_without_nodev = 3);
		BREAK(mounts_writable, f->mounts_writable = 5);
		BREAK(routes, f->routes = 1);
		BREAK(captured, f->captured = 1);
		BREAK(interfaces, f->interfaces = 2);
		BREAK(cgroup_version, f->cgroup_version = 0);
		BREAK(memory_bytes, f->memory_bytes++);
		BREAK(socket_bytes, f->socket_bytes = UINT64_MAX);
		BREAK(disk_bytes, f->disk_bytes = UINT64_MAX);
		BREAK(disk_inodes, f->disk_inodes = 0);
		BREAK(pids, f->pids = UINT32_MAX);
		BREAK(cpu_milli, f->cpu_milli = 0);
		BREAK(open_files, f->open_files++);
		BREAK(template, f->template[0] ^= 1);
	case POLICY_MAX:
		break;
	}
	fail_msg("a fact without a way to break it");
}

static uint32_t
first_uid_of(struct play *p, const struct id *sandbox)
{
	ASK(p, SANDBOX_GET, sandbox_get, {.caller = as_root, .sandbox = *sandbox});
	ANSWER(p, SANDBOX_ROW, sandbox_row, row);
	return row.facts.uid_base;
}

static void
check_record(struct play *p, const struct id *task, enum policy_fact fact)
{
	char what[96];

	(void)play_audit(p, task);
	(void)snprintf(
		what, sizeof(what), "\"differences\":[{\"fact\":\"%s\",", policy_info[fact].name);
	assert_int_equal(play_events(p, "sandbox.mismatch"), 1);
	if (!play_recorded(what))
		fail_msg("%s is not recorded", policy_info[fact].name);
	assert_int_equal(play_events(p, "sandbox.gone"), 1);
}

static void
test_spawned(void **state)
{
	struct play *p = *state;
	struct id other;
	int other_relay = play_create(p, &other, NULL);
	uint32_t uids = first_uid_of(p, &other);

	for (unsigned i = 0; i < POLICY_MAX; i++) {
		ASK(p, SANDBOX_CREATE, sandbox_create,
			{.caller = as_root,
				.tenant = view_str("acme"),
				.template = view_str("python")});
		WANT(p, p->supervisor, SPAWN, spawn, spawn);
		struct facts f = play_facts(p, &spawn.limits);
		break_fact(&f, (enum policy_fact)i, uids);
		int relay = play_spawned(p, &spawn.sandbox, &f);
		SAY(relay, RELAY_READY, relay_ready, {.agent_version = 1});
		WANT(p, p->supervisor, KILL, kill, kill);
		assert_int_equal(kill.reason, SANDBOX_REASON_MEASURED_DIFFERENT);
		play_want_closed(p, relay);
		play_gone(p, &spawn.sandbox, SANDBOX_REASON_KILLED);
		ANSWER(p, REFUSED, refused, refused);
		assert_int_equal(refused.error, ERROR_SPAWN);
		assert_non_null(memmem(refused.text.p, refused.text.n, policy_info[i].name,
			strlen(policy_info[i].name)));
		ASK(p, SANDBOX_GET, sandbox_get, {.caller = as_root, .sandbox = spawn.sandbox});
		ANSWER(p, SANDBOX_ROW, sandbox_row, row);
		assert_int_equal(row.state, SANDBOX_STATE_GONE);
		assert_int_equal(row.reason, SANDBOX_REASON_MEASURED_DIFFERENT);
		check_record(p, &row.task, (enum policy_fact)i);
		(void)close(relay);
	}
	(void)close(other_relay);
}

/* What was right when it was made and is not any more. */
static void
test_held(void **state)
{
	struct play *p = *state;
	struct id other, other_task, id, task;
	int pair[2];
	struct err err;

	for (unsigned i = 0; i < POLICY_MAX; i++) {
		int other_relay = play_create(p, &other, &other_task);
		int relay = play_create(p, &id, &task);
		struct facts f = play_facts(p, &p->settings.default_limits), of = f;

		of.userns_owner = of.uid_base += 65536;
		play_kill(p);
		play_launch(p);
		assert_int_equal(ipc_pair(pair, &err), 0);
		SAY_FD(p->supervisor, HELD, held, pair[1],
			{.sandbox = other, .task = other_task, .facts = of, .ttl_left_ms = 1000});
		(void)close(pair[1]);
		(void)close(other_relay);
		other_relay = pair[0];
		break_fact(&f, (enum policy_fact)i, of.uid_base);
		assert_int_equal(ipc_pair(pair, &err), 0);
		SAY_FD(p->supervisor, HELD, held, pair[1],
			{.sandbox = id, .task = task, .facts = f, .ttl_left_ms = 1000});
		(void)close(pair[1]);
		WANT(p, p->supervisor, KILL, kill, kill);
		assert_int_equal(kill.reason, SANDBOX_REASON_MEASURED_DIFFERENT);
		assert_true(id_eq(&kill.sandbox, &id));
		play_ready(p);
		play_gone(p, &id, SANDBOX_REASON_KILLED);
		play_gone(p, &other, SANDBOX_REASON_KILLED);
		do
			(void)play_audit(p, &task);
		while (play_events(p, "sandbox.gone") == 0);
		check_record(p, &task, (enum policy_fact)i);
		(void)close(pair[0]);
		(void)close(relay);
		(void)close(other_relay);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_spawned, setup, teardown),
		cmocka_unit_test_setup_teardown(test_held, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
