/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor as the engine sees it: what it builds, what it refuses, what it survives, and that nothing stays.
 * Each test has a supervisor of its own, and looks afterwards whether the host is as it was.
 */
#include "rig.h"

#include "lib/base/clock.h"
#include "lib/base/hex.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

static struct rig rig;
static struct greeting greeting;

static int
setup(void **state)
{
	(void)state;
	rig_init(&rig);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	if (rig.pid != 0)
		rig_kill(&rig);
	rig_done(&rig);
	return 0;
}

static void
up(void)
{
	rig_start(&rig);
	rig_greeting(&rig, &greeting);
	assert_int_equal(greeting.nheld, 0);
	rig_template(&rig);
}

static void
down(void)
{
	assert_int_equal(rig_stop(&rig), 0);
	host_is_clean(&rig);
}

#define PUT(type, name, ...)                              \
	do {                                              \
		const struct msg_##name m_ = __VA_ARGS__; \
		struct buf b_;                            \
		buf_init(&b_, IPC_MAX);                   \
		msg_##name##_put(&b_, &m_);               \
		rig_send(&rig, MSG_##type, &b_);          \
		buf_done(&b_);                            \
	} while (0)

static struct msg_gone
expect_gone(const struct id *id)
{
	struct msg_gone gone;
	struct ipc_msg in;
	struct err err;

	rig_expect(&rig, MSG_GONE, &in);
	assert_int_equal(msg_gone_get(in.body, &gone, &err), 0);
	assert_true(id_eq(&gone.sandbox, id));
	return gone;
}

static struct msg_spawn_failed
expect_refused(const char *about)
{
	struct msg_spawn_failed m;
	struct ipc_msg in;
	struct err err;

	rig_expect(&rig, MSG_SPAWN_FAILED, &in);
	assert_int_equal(in.tag, rig.tag);
	assert_int_equal(msg_spawn_failed_get(in.body, &m, &err), 0);
	assert_true(m.code < 0);
	if (strstr(m.text, about) == NULL)
		fail_msg("refused with: %s", m.text);
	proof_is_zero(&m.proof);
	return m;
}

/* ---- what it builds ---- */

static uint64_t
file_number(const char *path)
{
	unsigned long long n = 0;
	FILE *f = fopen(path, "re");

	if (f == NULL || fscanf(f, "%llu", &n) != 1)
		fail_msg("%s", path);
	(void)fclose(f);
	return n;
}

static void
test_facts(void **state)
{
	const struct limits l = rig_limits();
	struct msg_gone gone;
	char path[64];
	struct box b;
	const struct facts *f = &b.facts;

	(void)state;
	up();
	rig_spawn(&rig, &b);
	assert_int_equal(f->boundary, BOUNDARY_CONTAINER);
	assert_int_equal(f->uid_base % 65536, rig.settings.sandbox_uid_base % 65536);
	assert_true(f->uid_base >= rig.settings.sandbox_uid_base);
	assert_int_equal(f->uid_count, 65536);
	assert_int_equal(f->namespaces_own, 127);
	assert_int_equal(f->namespaces_owner_host, 126);
	assert_int_equal(f->userns_owner, f->uid_base);
	assert_int_equal(f->pending_signals, 4096);
	/* KILL 5, SETGID 6, SETUID 7, SETPCAP 8 */
	assert_int_equal(f->cap_permitted, 0x1e0);
	assert_int_equal(f->cap_effective, 0x1e0);
	assert_int_equal(f->cap_bounding, 0x1e0);
	assert_int_equal(f->cap_inheritable, 0);
	assert_int_equal(f->cap_ambient, 0);
	assert_int_equal(f->no_new_privs, 1);
	assert_int_equal(f->seccomp_mode, 2);
	assert_int_equal(f->root_read_only, 1);
	assert_int_equal(f->root_idmapped, 1);
	/* four places, /dev/pts and /dev/shm */
	assert_int_equal(f->mounts_writable, 6);
	assert_int_equal(f->mounts_unexpected, 0);
	assert_int_equal(f->mounts_without_nosuid, 0);
	assert_int_equal(f->mounts_without_nodev, 2);
	assert_int_equal(f->routes, 0);
	assert_int_equal(f->interfaces, 1);
	assert_int_equal(f->memory_bytes, l.memory_bytes);
	assert_true(f->socket_bytes == l.memory_bytes / 8 ||
		    (f->cgroup_version == 2 && f->socket_bytes == l.memory_bytes));
	assert_int_equal(f->disk_bytes, l.disk_bytes);
	assert_int_equal(f->disk_inodes, l.disk_inodes);
	assert_int_equal(f->pids, l.pids);
	assert_int_equal(f->cpu_milli, l.cpu_milli);
	assert_int_equal(f->open_files, l.open_files);
	assert_memory_equal(f->template, rig.image, 32);
	assert_true(process_lives((pid_t)f->host_pid));
	(void)snprintf(path, sizeof(path), "/proc/%u/oom_score_adj", f->host_pid);
	assert_int_equal(file_number(path), 500);
	assert_int_equal(box_say(&b, "pid").n, 1);
	rig_kill_box(&rig, &b, &gone);
	assert_int_equal(gone.reason, SANDBOX_REASON_KILLED);
	proof_is_zero(&gone.proof);
	assert_true(gone.usage.cpu_us > 0);
	assert_true(gone.usage.memory_peak_bytes > 0);
	assert_false(process_lives((pid_t)f->host_pid));
	down();
}

static void
test_two_share_nothing(void **state)
{
	struct msg_gone gone;
	struct box a, b;

	(void)state;
	up();
	rig_spawn(&rig, &a);
	rig_spawn(&rig, &b);
	assert_true(a.facts.uid_base != b.facts.uid_base);
	assert_int_equal(box_say(&a, "fill /workspace/x 65536").code, 0);
	assert_int_equal(box_say(&b, "open /workspace/x 0").code, ENOENT);
	rig_kill_box(&rig, &a, &gone);
	assert_int_equal(box_say(&b, "pid").n, 1);
	rig_kill_box(&rig, &b, &gone);
	down();
}

static void
test_inside(void **state)
{
	static const char *const closed[] = {"/proc/kcore", "/proc/keys", "/proc/kallsyms",
		"/proc/interrupts", "/proc/timer_list", "/proc/sysrq-trigger", "/proc/1/environ",
		"/proc/1/fd"};
	static const char *const absent[] = {
		"/sys/kernel", "/dev/kmsg", "/dev/mem", "/dev/loop0", "/dev/kvm"};
	struct msg_gone gone;
	struct box b;

	(void)state;
	up();
	rig_spawn(&rig, &b);
	for (size_t i = 0; i < ARRAY_LEN(closed); i++) {
		struct said s = box_say(&b, "open %s 0", closed[i]);

		if (s.code != EACCES && s.code != ENOENT && s.code != EPERM)
			fail_msg("%s: %lld %d", closed[i], s.n, s.code);
	}
	for (size_t i = 0; i < ARRAY_LEN(absent); i++)
		assert_int_equal(box_say(&b, "open %s 0", absent[i]).code, ENOENT);
	assert_int_not_equal(box_say(&b, "open /proc/sys/kernel/hostname 1").code, 0);
	assert_int_equal(box_say(&b, "open /bin/new %d", O_CREAT | O_WRONLY).code, EROFS);
	assert_int_equal(box_say(&b, "open /dev/new %d", O_CREAT | O_WRONLY).code, EROFS);
	assert_int_equal(box_say(&b, "open /dev/null 2").code, 0);
	/* Root is root, the user's home is the user's, /tmp is everybody's. */
	assert_int_equal(box_say(&b, "stat /bin/busybox").n, 0755);
	assert_int_equal(box_say(&b, "stat /home/agent").n, 10001 * 100000LL + 0755);
	assert_int_equal(box_say(&b, "stat /workspace").n, 10001 * 100000LL + 0755);
	assert_int_equal(box_say(&b, "stat /tmp").n, 10001 * 100000LL + 01777);
	assert_int_equal(box_say(&b, "stat /dev/null").n, 0666);
	rig_kill_box(&rig, &b, &gone);
	down();
}

static void
test_limits_hold(void **state)
{
	struct limits l = rig_limits();
	struct msg_gone gone;
	struct box b;
	struct said s;

	(void)state;
	up();
	l.memory_bytes = 32 << 20;
	rig_spawn_ask(&rig, &b, &l, 60000);
	rig_spawned(&rig, &b);
	s = box_say(&b, "fill /workspace/full %llu", 64ULL << 20);
	assert_int_equal(s.code, ENOSPC);
	assert_true(s.n <= (long long)l.disk_bytes && s.n > (long long)l.disk_bytes / 2);
	/* One budget for all places. */
	s = box_say(&b, "fill /tmp/more 65536");
	assert_int_equal(s.code, ENOSPC);
	s = box_say(&b, "inodes /tmp 5000");
	assert_int_equal(s.code, ENOSPC);
	assert_true(s.n < l.disk_inodes);
	s = box_say(&b, "forks - 100");
	assert_int_equal(s.code, EAGAIN);
	assert_true(s.n < l.pids);
	rig_kill_box(&rig, &b, &gone);
	assert_true(gone.usage.pids_refused > 0);
	assert_true(gone.usage.disk_used_bytes > l.disk_bytes / 2);
	proof_is_zero(&gone.proof);

	rig_spawn_ask(&rig, &b, &l, 60000);
	rig_spawned(&rig, &b);
	s = box_say(&b, "memory - %llu", 128ULL << 20);
	assert_int_equal(s.n, -1);
	assert_int_equal(s.code, SIGKILL);
	assert_int_equal(box_say(&b, "pid").n, 1); /* the sandbox goes on */
	rig_kill_box(&rig, &b, &gone);
	assert_true(gone.usage.oom_kills > 0);
	assert_true(gone.usage.memory_peak_bytes <= l.memory_bytes);
	down();
}

/* A file of the control group of this process, or of the one above it. */
static void
group_file(pid_t pid, const char *controller, bool above, const char *file, char *ret, size_t n)
{
	char path[64], line[256] = "", key[32];
	const char *at = NULL;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	(void)snprintf(key, sizeof(key), ":%s:", controller);
	f = fopen(path, "re");
	assert_non_null(f);
	while (at == NULL && fgets(line, sizeof(line), f) != NULL)
		at = strstr(line, key) != NULL ? strstr(line, key) + strlen(key) : NULL;
	(void)fclose(f);
	if (at == NULL) { /* a host with this controller on version 2 */
		skip();
		return;
	}
	(void)snprintf(ret, n, "/sys/fs/cgroup/%s%.*s%s/%s", controller, (int)strcspn(at, "\n"), at,
		above ? "/.." : "", file);
}

/* The group above all sandboxes has limits of its own, which hold for each: shown by lowering one by hand. */
static void
test_sum_of_processes(void **state)
{
	struct limits l = rig_limits();
	struct msg_gone gone;
	char path[512];
	struct box a, b;
	struct said s;
	FILE *f;

	(void)state;
	rig.settings.max_pids = 100;
	rig.settings.max_memory_bytes = 3 * l.memory_bytes;
	up();
	rig_spawn(&rig, &b);
	l.pids = 60;
	rig_spawn_ask(&rig, &a, &l, 60000);
	rig_spawned(&rig, &a);
	group_file((pid_t)a.facts.host_pid, "memory", true, "memory.limit_in_bytes", path,
		sizeof(path));
	/* and what spares need */
	assert_int_equal(file_number(path), 3 * l.memory_bytes + (64 << 20));
	group_file((pid_t)a.facts.host_pid, "memory", false, "memory.memsw.limit_in_bytes", path,
		sizeof(path));
	if (access(path, F_OK) == 0)
		assert_int_equal(file_number(path), l.memory_bytes);
	group_file((pid_t)a.facts.host_pid, "pids", true, "pids.max", path, sizeof(path));
	assert_int_equal(file_number(path), 104);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs("40", f) >= 0);
	assert_int_equal(fclose(f), 0);
	s = box_say(&a, "forks - 400");
	assert_int_equal(s.code, EAGAIN);
	assert_true(s.n > 20 && s.n < 40);
	rig_kill_box(&rig, &a, &gone);
	assert_int_equal(box_say(&b, "pid").n, 1);
	rig_kill_box(&rig, &b, &gone);
	down();
}

/*
 * What the kernel counts per user: a sandbox that takes all of it takes it from itself, not from root and not from another
 * sandbox.
 */
static void
test_user_counts(void **state)
{
	static const struct {
		const char *what;
		int code;
	} rows[] = {{"inotify", EMFILE}, {"timers", EAGAIN}};
	struct msg_gone gone;
	struct box a, b;

	(void)state;
	up();
	rig_spawn(&rig, &a);
	rig_spawn(&rig, &b);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct said s = box_say(&a, "take %s 1000000", rows[i].what);
		timer_t timer;
		int fd;

		assert_int_equal(s.code, rows[i].code);
		assert_true(s.n > 0);
		s = box_say(&b, "take %s 50", rows[i].what);
		assert_int_equal(s.code, 0);
		fd = inotify_init1(IN_CLOEXEC);
		assert_true(fd >= 0);
		(void)close(fd);
		assert_int_equal(timer_create(CLOCK_MONOTONIC, NULL, &timer), 0);
		assert_int_equal(timer_delete(timer), 0);
	}
	rig_kill_box(&rig, &a, &gone);
	proof_is_zero(&gone.proof);
	rig_kill_box(&rig, &b, &gone);
	down();
}

/* What sockets queue counts: without that it is a second memory without a limit. */
static void
test_socket_memory(void **state)
{
	struct limits l = rig_limits();
	struct msg_gone gone;
	struct box b;
	struct said s;

	(void)state;
	up();
	l.memory_bytes = 64 << 20;
	rig_spawn_ask(&rig, &b, &l, 60000);
	rig_spawned(&rig, &b);
	s = box_say(&b, "sockets - 100");
	if (s.n <= 0 || s.n > (long long)l.memory_bytes)
		fail_msg("sockets took %lld bytes, then %d", s.n, s.code);
	rig_kill_box(&rig, &b, &gone);
	proof_is_zero(&gone.proof);
	down();
}

/* ---- how it ends ---- */

static void
test_kill_takes_all(void **state)
{
	struct msg_gone gone;
	struct box b;

	(void)state;
	up();
	rig_spawn(&rig, &b);
	assert_int_equal(
		box_say(&b, "forks - 20").n, 20); /* sessions of their own, ignoring every signal */
	rig_kill_box(&rig, &b, &gone);
	proof_is_zero(&gone.proof);
	/* Again: it is gone already. */
	rig_kill_box(&rig, &b, &gone);
	assert_int_equal(gone.reason, SANDBOX_REASON_NONE);
	down();
}

/*
 * What somebody of the host holds is in the proof, by its kind, and nothing else is; when it is let go of, that is told
 * too.
 */
static void
test_proof_is_measured(void **state)
{
	static const struct {
		const char *path; /* below /proc/PID */
		unsigned namespaces, mounts;
	} rows[] = {{"ns/net", 1, 0}, {"ns/mnt", 1, 1}, {"ns/ipc", 1, 0}, {"ns/uts", 1, 0},
		{"ns/cgroup", 1, 0}, {"root/workspace", 0, 1}};

	(void)state;
	up();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct msg_gone gone;
		struct box b;
		char path[128];
		int held;

		rig_spawn(&rig, &b);
		(void)snprintf(path, sizeof(path), "/proc/%u/%s", b.facts.host_pid, rows[i].path);
		held = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(held >= 0);
		rig_kill_box(&rig, &b, &gone);
		assert_int_equal(gone.proof.namespaces, rows[i].namespaces);
		assert_int_equal(gone.proof.mounts, rows[i].mounts);
		assert_int_equal(gone.proof.processes, 0);
		assert_int_equal(gone.proof.cgroups, 0);
		assert_int_equal(gone.proof.journal, 0);
		assert_int_equal(close(held), 0);
		gone = expect_gone(&b.id);
		proof_is_zero(&gone.proof);
	}
	down();
}

/* A process of the host that stands in one of its control groups is ended with it; a directory in it is left. */
static void
test_proof_counts_groups(void **state)
{
	struct msg_gone gone;
	struct box b;
	char path[300], line[256] = "", inner[600];
	FILE *f;

	(void)state;
	up();
	rig_spawn(&rig, &b);
	(void)snprintf(path, sizeof(path), "/proc/%u/cgroup", b.facts.host_pid);
	f = fopen(path, "re");
	assert_non_null(f);
	do
		assert_non_null(fgets(line, sizeof(line), f));
	while (strstr(line, ":pids:") == NULL);
	assert_int_equal(fclose(f), 0);
	line[strcspn(line, "\n")] = '\0';
	(void)snprintf(inner, sizeof(inner), "/sys/fs/cgroup/pids%s/inner", strrchr(line, ':') + 1);
	if (mkdir(inner, 0755) < 0)
		skip(); /* a host whose hierarchies stand elsewhere */
	rig_kill_box(&rig, &b, &gone);
	assert_int_equal(gone.proof.cgroups, 1);
	assert_int_equal(gone.proof.namespaces, 0);
	assert_int_equal(gone.proof.mounts, 0);
	assert_int_equal(rmdir(inner), 0);
	gone = expect_gone(&b.id);
	proof_is_zero(&gone.proof);
	down();
}

static void
test_agent_ends(void **state)
{
	struct limits l = rig_limits();
	struct msg_gone gone;
	struct box b;

	(void)state;
	up();
	rig_spawn(&rig, &b);
	(void)box_say(&b, "forks - 5");
	assert_int_equal(kill((pid_t)b.facts.host_pid, SIGKILL), 0);
	gone = expect_gone(&b.id);
	assert_int_equal(gone.reason, SANDBOX_REASON_AGENT_LOST);
	proof_is_zero(&gone.proof);
	box_close(&b);

	rig_spawn(&rig, &b);
	assert_int_equal(send(b.channel, "exit", 4, 0), 4);
	gone = expect_gone(&b.id);
	assert_int_equal(gone.reason, SANDBOX_REASON_AGENT_LOST);
	box_close(&b);

	l.memory_bytes = 24 << 20;
	rig_spawn_ask(&rig, &b, &l, 60000);
	rig_spawned(&rig, &b);
	assert_int_equal(send(b.channel, "own-memory - 100000000", 22, 0), 22);
	gone = expect_gone(&b.id);
	assert_int_equal(gone.reason, SANDBOX_REASON_OOM);
	box_close(&b);
	down();
}

/* The relay of a sandbox: the child of the supervisor with the relays' uid that holds the other end of our channel. */
static pid_t
relay_of(struct box *b)
{
	struct ucred who;
	socklen_t n = sizeof(who);

	assert_int_equal(getsockopt(b->engine_edge, SOL_SOCKET, SO_PEERCRED, &who, &n), 0);
	/* The pair was made by the supervisor: look for its newest child with that uid. */
	pid_t newest = 0;
	for (pid_t pid = 2; pid < 32768; pid++) {
		char path[64], text[64];
		ssize_t len;
		struct stat st;

		(void)snprintf(path, sizeof(path), "/proc/%d", pid);
		if (stat(path, &st) < 0 || st.st_uid != rig.settings.relay_uid)
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%d/fd/3", pid);
		len = readlink(path, text, sizeof(text) - 1);
		if (len > 0) {
			char own[64], mine[64];
			ssize_t m;

			text[len] = '\0';
			(void)snprintf(own, sizeof(own), "/proc/self/fd/%d", b->channel);
			m = readlink(own, mine, sizeof(mine) - 1);
			mine[m > 0 ? m : 0] = '\0';
			if (strcmp(mine, text) == 0)
				newest = pid;
		}
	}
	return newest;
}

static void
test_relay_ends(void **state)
{
	struct msg_gone gone;
	struct box b;
	pid_t relay;

	(void)state;
	up();
	rig_spawn(&rig, &b);
	relay = relay_of(&b);
	assert_true(relay > 0);
	assert_int_equal(kill(relay, SIGKILL), 0);
	gone = expect_gone(&b.id);
	assert_int_equal(gone.reason, SANDBOX_REASON_RELAY_LOST);
	proof_is_zero(&gone.proof);
	assert_false(process_lives((pid_t)b.facts.host_pid));
	box_close(&b);
	down();
}

static void
test_ttl(void **state)
{
	struct limits l = rig_limits();
	struct msg_ttl_is is;
	struct ipc_msg in;
	struct msg_gone gone;
	struct err err;
	struct box b;
	uint64_t at = clock_mono_ms();

	(void)state;
	rig.settings.max_ttl_ms = 2000;
	up();
	rig_spawn_ask(&rig, &b, &l, 300);
	rig_spawned(&rig, &b);
	gone = expect_gone(&b.id); /* without any message of ours */
	assert_int_equal(gone.reason, SANDBOX_REASON_TTL);
	assert_true(clock_mono_ms() - at >= 300);
	assert_true(clock_mono_ms() - at < 1500);
	proof_is_zero(&gone.proof);
	box_close(&b);

	/* Longer than the ceiling is the ceiling, counted from creation. */
	at = clock_mono_ms();
	rig_spawn_ask(&rig, &b, &l, 500);
	rig_spawned(&rig, &b);
	pause_ms(200);
	PUT(TTL_SET, ttl_set, {.sandbox = b.id, .ttl_ms = UINT64_MAX});
	rig_expect(&rig, MSG_TTL_IS, &in);
	assert_int_equal(msg_ttl_is_get(in.body, &is, &err), 0);
	assert_true(is.ttl_ms <= 1800 && is.ttl_ms > 1000);
	gone = expect_gone(&b.id);
	assert_int_equal(gone.reason, SANDBOX_REASON_TTL);
	assert_true(clock_mono_ms() - at >= 1900);
	assert_true(clock_mono_ms() - at < 3500);
	box_close(&b);

	/* Shorter, down to nothing. */
	rig_spawn_ask(&rig, &b, &l, 2000);
	rig_spawned(&rig, &b);
	PUT(TTL_SET, ttl_set, {.sandbox = b.id, .ttl_ms = 0});
	rig_expect(&rig, MSG_TTL_IS, &in);
	gone = expect_gone(&b.id);
	assert_int_equal(gone.reason, SANDBOX_REASON_TTL);
	box_close(&b);
	PUT(TTL_SET, ttl_set, {.sandbox = b.id, .ttl_ms = 1000});
	gone = expect_gone(&b.id);
	down();
}

static void
freeze(struct box *b, bool frozen)
{
	struct msg_frozen m;
	struct ipc_msg in;
	struct err err;

	PUT(FREEZE, freeze, {.sandbox = b->id, .frozen = frozen});
	rig_expect(&rig, MSG_FROZEN, &in);
	assert_int_equal(in.tag, rig.tag);
	assert_int_equal(msg_frozen_get(in.body, &m, &err), 0);
	assert_int_equal(m.code, 0);
	assert_int_equal(m.frozen, frozen);
}

static void
test_freeze(void **state)
{
	struct msg_gone gone;
	struct box b;
	struct pollfd p = {.events = POLLIN};

	(void)state;
	up();
	rig_spawn(&rig, &b);
	p.fd = b.channel;
	freeze(&b, true);
	freeze(&b, true); /* again is no fault */
	assert_int_equal(send(b.channel, "pid", 3, 0), 3);
	assert_int_equal(poll(&p, 1, 100), 0); /* silence */
	freeze(&b, false);
	assert_int_equal(poll(&p, 1, 5000), 1);
	(void)recv(b.channel, &(char[64]){0}, 64, 0);
	freeze(&b, true);
	rig_kill_box(&rig, &b, &gone); /* a frozen one dies too */
	proof_is_zero(&gone.proof);

	rig_spawn(&rig, &b);
	freeze(&b, true);
	PUT(TTL_SET, ttl_set, {.sandbox = b.id, .ttl_ms = 100});
	rig_expect(&rig, MSG_TTL_IS, &(struct ipc_msg){0});
	gone = expect_gone(&b.id); /* its time goes on */
	assert_int_equal(gone.reason, SANDBOX_REASON_TTL);
	box_close(&b);
	down();
}

static void
test_usage(void **state)
{
	struct msg_usage m;
	struct msg_gone gone;
	struct ipc_msg in;
	struct err err;
	struct box b;

	(void)state;
	up();
	rig_spawn(&rig, &b);
	(void)box_say(&b, "forks - 3");
	(void)box_say(&b, "fill /tmp/x 1000000");
	PUT(USAGE_ASK, usage_ask, {.sandbox = b.id});
	rig_expect(&rig, MSG_USAGE, &in);
	assert_int_equal(in.tag, rig.tag);
	assert_int_equal(msg_usage_get(in.body, &m, &err), 0);
	assert_int_equal(m.usage.pids, 4);
	assert_true(m.usage.disk_used_bytes >= 1000000);
	assert_int_equal(
		m.usage.disk_used_bytes + m.usage.disk_free_bytes, rig_limits().disk_bytes);
	assert_true(m.usage.memory_bytes >= 1000000);
	rig_kill_box(&rig, &b, &gone);
	PUT(USAGE_ASK, usage_ask, {.sandbox = b.id});
	(void)expect_gone(&b.id);
	down();
}

/* ---- what it refuses ---- */

static void
refuse(struct limits l, uint64_t ttl_ms, const char *about)
{
	struct box b;

	rig_spawn_ask(&rig, &b, &l, ttl_ms);
	(void)expect_refused(about);
}

static void
test_ceilings(void **state)
{
	const struct limits good = rig_limits();
	struct limits l;
	struct box a, b;

	(void)state;
	rig.settings.max_sandboxes = 2;
	rig.settings.max_memory_bytes = 3 * good.memory_bytes;
	rig.settings.max_pids = 3 * good.pids;
	up();
	refuse(good, 0, "life");
	refuse(good, rig.settings.max_ttl_ms + 1, "life");
	refuse(good, UINT64_MAX, "life");
#define REFUSE(field, value, about) l = good, l.field = (value), refuse(l, 1000, about)
	REFUSE(memory_bytes, 0, "memory");
	REFUSE(memory_bytes, rig.settings.max_limits.memory_bytes + 1, "memory");
	REFUSE(memory_bytes, UINT64_MAX, "memory");
	REFUSE(disk_bytes, 0, "disk");
	REFUSE(disk_bytes, UINT64_MAX, "disk");
	REFUSE(disk_inodes, 0, "inodes");
	REFUSE(disk_inodes, UINT32_MAX, "inodes");
	REFUSE(pids, 0, "processes");
	REFUSE(pids, UINT32_MAX, "processes");
	REFUSE(cpu_milli, 0, "processor");
	REFUSE(cpu_milli, UINT32_MAX, "processor");
	REFUSE(open_files, 0, "open files");
	REFUSE(open_files, UINT32_MAX, "open files");
	REFUSE(memory_bytes, 4 * good.memory_bytes, "memory limits of all");
	rig_spawn(&rig, &a);
	REFUSE(memory_bytes, 2 * good.memory_bytes + 1, "memory limits of all");
	REFUSE(pids, 2 * good.pids + 1, "process limits of all");
	rig_spawn(&rig, &b);
	refuse(good, 1000, "2 sandboxes already");
	box_close(&a);
	box_close(&b);
	down();
}

static void
prepare_fails(const uint8_t digest[32], const char *place, const char *about)
{
	struct msg_template_prepare m = {0};
	struct msg_template_failed failed;
	struct ipc_msg in;
	struct err err;

	memcpy(m.template, digest, 32);
	(void)snprintf(m.places[0], sizeof(m.places[0]), "/workspace");
	(void)snprintf(m.places[1], sizeof(m.places[1]), "%s", place);
	PUT(TEMPLATE_PREPARE, template_prepare, m);
	rig_expect(&rig, MSG_TEMPLATE_FAILED, &in);
	assert_int_equal(in.tag, rig.tag);
	assert_int_equal(msg_template_failed_get(in.body, &failed, &err), 0);
	assert_memory_equal(failed.template, digest, 32);
	if (strstr(failed.text, about) == NULL)
		fail_msg("refused with: %s", failed.text);
}

static void
test_templates(void **state)
{
	static const char *const bad[] = {"workspace", "/", "//tmp", "/tmp/", "/tmp/..", "/./tmp",
		"/proc", "/dev/shm", "/sys/x", "/a\\b", "/a b", "/workspace/in", "/workspace"};
	char text[65], good[512], other[512];
	uint8_t wrong[32] = {1, 2, 3};
	struct box b;

	(void)state;
	rig_start(&rig);
	rig_greeting(&rig, &greeting);
	hex_encode(rig.image, 32, text);
	(void)snprintf(good, sizeof(good), "%s/templates/%s.erofs", rig.settings.state_dir, text);
	hex_encode(wrong, 32, text);
	(void)snprintf(other, sizeof(other), "%s/templates/%s.erofs", rig.settings.state_dir, text);

	rig_spawn_ask(&rig, &b, &(struct limits){1 << 24, 1 << 20, 100, 10, 100, 64}, 1000);
	(void)expect_refused("not mounted");
	prepare_fails(wrong, "", "No such file");
	assert_int_equal(link(good, other), 0);
	prepare_fails(wrong, "", "digest is another");
	assert_int_equal(unlink(other), 0);
	assert_int_equal(symlink(good, other), 0);
	prepare_fails(wrong, "", "symbolic links");
	assert_int_equal(unlink(other), 0);
	assert_int_equal(mkfifo(other, 0600), 0);
	prepare_fails(wrong, "", "not a file of root");
	assert_int_equal(unlink(other), 0);
	assert_int_equal(chmod(good, 0666), 0);
	prepare_fails(rig.image, "", "not a file of root");
	assert_int_equal(chmod(good, 0444), 0);
	assert_int_equal(chown(good, 1000, 0), 0);
	prepare_fails(rig.image, "", "not a file of root");
	assert_int_equal(chown(good, 0, 0), 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		prepare_fails(rig.image, bad[i], "place");
	prepare_fails(rig.image, "/absent", "no directory");
	prepare_fails(rig.image, "/link", "no directory /link");
	prepare_fails(rig.image, "/link/in", "no directory /link/in");
	rig_template(&rig);
	rig_template(&rig); /* again is no fault */
	rig_spawn(&rig, &b);
	box_close(&b);
	down();
}

/* ---- a broken engine ---- */

static void
engine_is_replaced(const struct box *b, size_t nheld)
{
	pid_t old = rig.engine_pid;

	/* It is ended, it does not end itself: our link to it still stands. */
	for (int i = 0; process_lives(old) && i < 100; i++)
		pause_ms(20);
	assert_false(process_lives(old));
	rig_engine_accept(&rig);
	assert_int_not_equal(rig.engine_pid, old);
	rig_greeting(&rig, &greeting);
	assert_int_equal(greeting.nheld, nheld);
	if (nheld == 0)
		return;
	assert_true(id_eq(&greeting.held[0].m.sandbox, &b->id));
	assert_true(id_eq(&greeting.held[0].m.task, &b->task));
	assert_memory_equal(&greeting.held[0].m.facts, &b->facts, sizeof(b->facts));
	assert_true(greeting.held[0].m.ttl_left_ms <= 60000 && greeting.held[0].m.ttl_left_ms > 0);
	for (size_t i = 0; i < greeting.nheld; i++)
		(void)close(greeting.held[i].edge);
}

static void
send_bytes(uint16_t type, uint16_t nfds_said, uint32_t length_said, size_t n, const int *fds,
	size_t nfds)
{
	uint8_t bytes[512] = {(uint8_t)(type >> 8), (uint8_t)type, (uint8_t)(nfds_said >> 8),
		(uint8_t)nfds_said, (uint8_t)(length_said >> 24), (uint8_t)(length_said >> 16),
		(uint8_t)(length_said >> 8), (uint8_t)length_said};

	assert_true(n <= sizeof(bytes));
	rig_send_raw(&rig, bytes, n, fds, nfds);
}

static void
test_broken_engine(void **state)
{
	const uint32_t kill_bytes = msg_info[MSG_KILL].body_max;
	const int fd = STDIN_FILENO;
	struct msg_gone gone;
	struct box b;

	(void)state;
	up();
	rig_spawn(&rig, &b);
	send_bytes(MSG_KILL, 0, kill_bytes, 3, NULL, 0); /* shorter than a header */
	engine_is_replaced(&b, 1);
	send_bytes(MSG_KILL, 0, kill_bytes, 16 + kill_bytes - 1, NULL, 0);
	engine_is_replaced(&b, 1);
	send_bytes(MSG_KILL, 0, kill_bytes, 16 + kill_bytes + 1, NULL, 0);
	engine_is_replaced(&b, 1);
	send_bytes(MSG_KILL, 0, kill_bytes - 1, 16 + kill_bytes - 1, NULL, 0);
	engine_is_replaced(&b, 1);
	send_bytes(0xffff, 0, 0, 16, NULL, 0);
	engine_is_replaced(&b, 1);
	send_bytes(MSG_SPAWNED, 0, 0, 16, NULL, 0); /* the supervisor's own */
	engine_is_replaced(&b, 1);
	send_bytes(MSG_JOB_RUN, 0, 0, 16, NULL, 0); /* of another edge */
	engine_is_replaced(&b, 1);
	send_bytes(
		MSG_KILL, 0, kill_bytes, 16 + kill_bytes, &fd, 1); /* a descriptor that is none */
	engine_is_replaced(&b, 1);
	send_bytes(MSG_KILL, 1, kill_bytes, 16 + kill_bytes, &fd, 1);
	engine_is_replaced(&b, 1);
	PUT(STOPPED, stopped, {0}); /* nobody is stopping */
	engine_is_replaced(&b, 1);
	PUT(SPAWN, spawn,
		{.sandbox = b.id, .task = b.task, .limits = rig_limits(), .ttl_ms = 1000});
	engine_is_replaced(&b, 1);
	PUT(SPAWN, spawn, {.limits = rig_limits(), .ttl_ms = 1000}); /* no id */
	engine_is_replaced(&b, 1);
	assert_int_equal(box_say(&b, "pid").n, 1);
	rig_kill_box(&rig, &b, &gone);
	proof_is_zero(&gone.proof);
	down();
}

static void
test_engine_killed(void **state)
{
	struct limits l = rig_limits();
	struct msg_gone gone;
	struct box b, short_lived, building;

	(void)state;
	up();
	rig_spawn(&rig, &b);
	rig_spawn_ask(&rig, &short_lived, &l, 300);
	rig_spawned(&rig, &short_lived);
	assert_int_equal(kill(rig.engine_pid, SIGKILL), 0);
	pause_ms(20); /* its end is noticed, the next one waits for us */
	kill(rig.pid, SIGSTOP);
	pause_ms(400); /* meanwhile the time of one is over */
	kill(rig.pid, SIGCONT);
	rig_engine_accept(&rig);
	rig_greeting(&rig, &greeting);
	if (greeting.nheld == 2) {
		gone = expect_gone(&short_lived.id);
	} else {
		assert_int_equal(greeting.nheld, 1);
		gone = expect_gone(&short_lived.id); /* told to the engine that comes */
	}
	assert_int_equal(gone.reason, SANDBOX_REASON_TTL);
	proof_is_zero(&gone.proof);
	box_close(&short_lived);
	for (size_t i = 0; i < greeting.nheld; i++)
		(void)close(greeting.held[i].edge);

	/* What it had ordered and was not told of is taken down. */
	kill(rig.pid, SIGSTOP); /* else it may be built, and told, before the engine is dead */
	rig_spawn_ask(&rig, &building, &l, 60000);
	assert_int_equal(kill(rig.engine_pid, SIGKILL), 0);
	pause_ms(20);
	kill(rig.pid, SIGCONT);
	engine_is_replaced(&b, 1);
	pause_ms(300);
	PUT(KILL, kill, {.sandbox = building.id, .reason = SANDBOX_REASON_KILLED});
	for (;;) {
		gone = expect_gone(&building.id);
		proof_is_zero(&gone.proof);
		if (gone.reason == SANDBOX_REASON_NONE)
			break;
		assert_int_equal(gone.reason, SANDBOX_REASON_ENGINE_RESTART);
	}
	assert_int_equal(box_say(&b, "pid").n, 1);
	rig_kill_box(&rig, &b, &gone);
	down();
}

static void
api_says(int edge)
{
	struct pollfd p = {.fd = edge, .events = POLLIN};
	char text[64];
	ssize_t n;

	assert_int_equal(poll(&p, 1, 10000), 1);
	n = recv(edge, text, sizeof(text) - 1, 0);
	assert_true(n > 0);
	text[n] = '\0';
	assert_string_equal(text, "127.0.0.1:7421");
}

static pid_t
child_with_uid(uint32_t uid)
{
	for (pid_t pid = 2; pid < 32768; pid++) {
		char path[64];
		struct stat st;

		(void)snprintf(path, sizeof(path), "/proc/%d", pid);
		if (stat(path, &st) == 0 && st.st_uid == uid)
			return pid;
	}
	return 0;
}

static void
test_api(void **state)
{
	struct ipc_msg in;
	pid_t api;

	(void)state;
	up();
	api_says(rig.api);
	api = child_with_uid(rig.settings.api_uid);
	assert_true(api > 0);
	assert_int_equal(kill(api, SIGKILL), 0);
	rig_expect(&rig, MSG_API_EDGE, &in);
	api_says(in.fds[0]);
	ipc_msg_done(&in);
	assert_int_not_equal(child_with_uid(rig.settings.api_uid), api);
	/* An engine that is started anew: the running api gets the other end. */
	assert_int_equal(kill(rig.engine_pid, SIGKILL), 0);
	rig_engine_accept(&rig);
	rig_greeting(&rig, &greeting);
	api_says(rig.api);
	down();
}

/* ---- the end of the supervisor ---- */

static void
test_stop(void **state)
{
	struct msg_stopped stopped = {0};
	struct buf body;
	struct box b[3];
	struct ipc_msg in;
	struct err err;
	size_t ngone = 0;
	bool stopping = false;
	char path[300];
	int status;

	(void)state;
	up();
	for (size_t i = 0; i < ARRAY_LEN(b); i++)
		rig_spawn(&rig, &b[i]);
	assert_int_equal(kill(rig.pid, SIGTERM), 0);
	while (ngone < ARRAY_LEN(b)) {
		assert_true(rig_next(&rig, 5000, &in));
		if (in.type == MSG_STOPPING) {
			stopping = true;
		} else {
			struct msg_gone gone;

			assert_int_equal(in.type, MSG_GONE);
			assert_int_equal(msg_gone_get(in.body, &gone, &err), 0);
			assert_int_equal(gone.reason, SANDBOX_REASON_HOST_STOPPED);
			proof_is_zero(&gone.proof);
			ngone++;
		}
	}
	assert_true(stopping);
	assert_true(process_lives(rig.pid)); /* it waits for the engine's records */
	refuse(rig_limits(), 1000, "stopping");
	buf_init(&body, 16);
	msg_stopped_put(&body, &stopped);
	rig_send(&rig, MSG_STOPPED, &body);
	assert_int_equal(waitpid(rig.pid, &status, 0), rig.pid);
	rig.pid = 0;
	assert_int_equal(status, 0);
	for (size_t i = 0; i < ARRAY_LEN(b); i++)
		box_close(&b[i]);
	assert_int_equal(access(rig.settings.run_dir, F_OK), -1); /* with its lock, by the holder */
	(void)snprintf(path, sizeof(path), "%s/journal", rig.settings.state_dir);
	assert_int_equal(access(path, F_OK), -1);
	host_is_clean(&rig);
}

/* An engine that never says STOPPED is not waited for longer than 3 s. */
static void
test_stop_with_deaf_engine(void **state)
{
	uint64_t at;
	struct box b;
	int status;

	(void)state;
	up();
	rig_spawn(&rig, &b);
	at = clock_mono_ms();
	assert_int_equal(kill(rig.pid, SIGTERM), 0);
	assert_int_equal(waitpid(rig.pid, &status, 0), rig.pid);
	rig.pid = 0;
	assert_int_equal(status, 0);
	assert_true(clock_mono_ms() - at >= 2900 && clock_mono_ms() - at < 5000);
	box_close(&b);
	host_is_clean(&rig);
}

static void
test_supervisor_killed(void **state)
{
	struct box b[5];
	uint64_t at;

	(void)state;
	up();
	for (size_t i = 0; i < ARRAY_LEN(b); i++) {
		rig_spawn(&rig, &b[i]);
		(void)box_say(&b[i], "forks - 3");
	}
	rig_kill(&rig);
	/* Processes end with it, though we hold the channels of their agents open. */
	for (int i = 0; host_look(&rig).processes != 0 && i < 100; i++)
		pause_ms(20);
	assert_int_equal(host_look(&rig).processes, 0);
	assert_int_equal(host_look(&rig).mounts, 0);
	assert_true(host_look(&rig).groups > 0); /* these are for the next one */
	for (size_t i = 0; i < ARRAY_LEN(b); i++)
		box_close(&b[i]);

	at = clock_mono_ms();
	rig_start(&rig);
	rig_greeting(&rig, &greeting);
	assert_true(clock_mono_ms() - at < 5000);
	assert_int_equal(greeting.nheld, 0);
	assert_int_equal(greeting.nleft, ARRAY_LEN(b));
	for (size_t i = 0; i < greeting.nleft; i++) {
		bool known = false;

		proof_is_zero(&greeting.left[i].proof);
		for (size_t k = 0; k < ARRAY_LEN(b); k++)
			known |= id_eq(&greeting.left[i].sandbox, &b[k].id) &&
				 id_eq(&greeting.left[i].task, &b[k].task);
		assert_true(known);
	}
	down();
	/* And the one after that finds nothing. */
	rig_start(&rig);
	rig_greeting(&rig, &greeting);
	assert_int_equal(greeting.nleft, 0);
	down();
}

static void
journal_write(const char *text)
{
	char path[300];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/journal", rig.settings.state_dir);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/*
 * The next supervisor runs in another control group, as a unit does that is started by hand, and below which its
 * predecessor's are not: it finds and removes what that left.
 */
static void
test_killed_elsewhere(void **state)
{
	struct box b;

	(void)state;
	rig.aside = true;
	up();
	rig_spawn(&rig, &b);
	assert_int_equal(kill((pid_t)b.facts.host_pid, SIGSTOP), 0);
	assert_int_equal(box_say(&b, "no-death-signal").code, -9);
	assert_int_equal(kill((pid_t)b.facts.host_pid, SIGCONT), 0);
	assert_int_equal(recv(b.channel, &(char[64]){0}, 64, 0) > 0, 1);
	rig_kill(&rig);
	pause_ms(100);
	assert_true(process_lives((pid_t)b.facts.host_pid));
	assert_true(host_look(&rig).groups > 0);
	rig.aside = false;
	rig_start(&rig);
	rig_greeting(&rig, &greeting);
	assert_int_equal(greeting.nleft, 1);
	proof_is_zero(&greeting.left[0].proof);
	assert_false(process_lives((pid_t)b.facts.host_pid));
	box_close(&b);
	down();
}

/* A journal whose hierarchies are not where it says: what is not known is not zero, and stays for the next start. */
static void
test_killed_unknown(void **state)
{
	static char text[8192], other[8192];
	char journal[300], *at;
	struct box b;
	FILE *f;

	(void)state;
	up();
	rig_spawn(&rig, &b);
	rig_kill(&rig);
	box_close(&b);
	(void)snprintf(journal, sizeof(journal), "%s/journal", rig.settings.state_dir);
	f = fopen(journal, "re");
	assert_non_null(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	assert_int_equal(fclose(f), 0);
	at = strstr(text, "\n+ ");
	assert_non_null(at);
	(void)snprintf(
		other, sizeof(other), "%.*s\n@ /nowhere/demilune-0%s", (int)(at - text), text, at);
	journal_write(other);
	rig_start(&rig);
	rig_greeting(&rig, &greeting);
	assert_int_equal(greeting.nleft, 1);
	assert_int_equal(greeting.left[0].proof.cgroups, 1);
	assert_int_equal(greeting.left[0].proof.journal, 1);
	rig_stop(&rig);
	/* The next one still knows of it; there the hierarchy can be seen, and the group is not in it. */
	f = fopen(journal, "re");
	assert_non_null(f);
	memset(text, 0, sizeof(text));
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	assert_int_equal(fclose(f), 0);
	at = strstr(text, "@ /nowhere/demilune-0\n");
	assert_non_null(at);
	(void)snprintf(other, sizeof(other), "%.*s@ /sys/fs/cgroup/pids/demilune-0%s",
		(int)(at - text), text, at + strlen("@ /nowhere/demilune-0"));
	journal_write(other);
	rig_start(&rig);
	rig_greeting(&rig, &greeting);
	assert_int_equal(greeting.nleft, 1);
	proof_is_zero(&greeting.left[0].proof);
	down();
}

/* After another start of the machine nothing of before can live. */
static void
test_killed_reboot(void **state)
{
	(void)state;
	journal_write("demilune-journal 2 0-0-0\n@ /nowhere/demilune-0\n+ s1-0 0\n"
		      "= s1-0 sb_0000000000000000 tk_0000000000000000\n");
	rig_start(&rig);
	rig_greeting(&rig, &greeting);
	assert_int_equal(greeting.nleft, 1);
	proof_is_zero(&greeting.left[0].proof);
	down();
}

/* A process that outlived its supervisor is found by its control group. */
static void
test_survivor(void **state)
{
	struct box b;

	(void)state;
	up();
	rig_spawn(&rig, &b);
	assert_int_equal(kill((pid_t)b.facts.host_pid, SIGSTOP), 0);
	assert_int_equal(
		box_say(&b, "no-death-signal").code, -9); /* PID 1 cannot answer: it is stopped */
	assert_int_equal(kill((pid_t)b.facts.host_pid, SIGCONT), 0);
	assert_int_equal(recv(b.channel, &(char[64]){0}, 64, 0) > 0, 1);
	rig_kill(&rig);
	pause_ms(100);
	assert_true(process_lives(
		(pid_t)b.facts.host_pid)); /* it made itself deaf to its supervisor's death */
	rig_start(&rig);
	rig_greeting(&rig, &greeting);
	assert_int_equal(greeting.nleft, 1);
	proof_is_zero(&greeting.left[0].proof);
	assert_false(process_lives((pid_t)b.facts.host_pid));
	box_close(&b);
	down();
}

static void
test_bad_starts(void **state)
{
	char path[300];
	struct rig other;
	struct settings good = rig.settings;

	(void)state;
	assert_int_equal(rig_start_fails(&rig, "faults"), 3);
	assert_int_equal(rig_start_fails(&rig, "die"), 3);
	assert_int_equal(rig_start_fails(&rig, "not a message"), 3);
	rig.settings.api_uid = rig.settings.engine_uid;
	assert_int_equal(rig_start_fails(&rig, NULL), 3);
	rig.settings = good;
	rig.settings.relay_uid = rig.settings.sandbox_uid_base + 65537;
	assert_int_equal(rig_start_fails(&rig, NULL), 3);
	rig.settings = good;
	rig.settings.sandbox_uid_slots = 1;
	assert_int_equal(rig_start_fails(&rig, NULL), 3);
	rig.settings = good;
	rig.settings.sandbox_uid_base = UINT32_MAX - 65536;
	assert_int_equal(rig_start_fails(&rig, NULL), 1);
	rig.settings = good;
	rig.settings.max_pids = UINT32_MAX; /* more than the kernel has */
	assert_int_equal(rig_start_fails(&rig, NULL), 1);
	rig.settings = good;
	journal_write("demilune-journal 1 x\n");
	assert_int_equal(rig_start_fails(&rig, NULL), 1);
	journal_write("demilune-journal 2 0badcafe\n+ s1-0 0\n+ s2"); /* cut while it was written */
	/* A state directory that others may write is none. */
	assert_int_equal(chmod(rig.settings.state_dir, 0777), 0);
	assert_int_equal(rig_start_fails(&rig, NULL), 1);
	assert_int_equal(chmod(rig.settings.state_dir, 0755), 0);
	rig_start(&rig);
	rig_greeting(&rig, &greeting);
	assert_int_equal(greeting.nleft, 0); /* s1-0 was a spare, nobody's */
	/* A second one on the same directories. */
	other = rig;
	assert_int_equal(rig_start_fails(&other, NULL), 1);
	(void)snprintf(
		other.settings.state_dir, sizeof(other.settings.state_dir), "%s/other", rig.dir);
	assert_int_equal(rig_start_fails(&other, NULL), 1); /* the run directory is taken too */
	(void)snprintf(path, sizeof(path), "%s/api.sock", rig.settings.run_dir);
	assert_int_equal(access(path, F_OK), 0); /* and the first one's socket is still there */
	down();
}

/* ---- many ---- */

static void
test_storm(void **state)
{
	enum { N = 200, MORE = 300 };
	static struct box boxes[N];
	struct msg_gone gone;
	size_t fds;
	unsigned seed = 1;

	(void)state;
	up();
	pause_ms(300);
	fds = process_fds(rig.pid);
	for (size_t i = 0; i < N; i++)
		rig_spawn(&rig, &boxes[i]);
	for (size_t i = 0; i < MORE; i++) {
		struct box *b = &boxes[(size_t)rand_r(&seed) % N];

		if (i % 7 == 0) {
			/* Not by the supervisor. */
			assert_int_equal(kill((pid_t)b->facts.host_pid, SIGKILL), 0);
			gone = expect_gone(&b->id);
			box_close(b);
		} else {
			if (i % 5 == 0)
				(void)box_say(b, "forks - 8");
			rig_kill_box(&rig, b, &gone);
		}
		proof_is_zero(&gone.proof);
		rig_spawn(&rig, b);
	}
	for (size_t i = 0; i < N; i++) {
		rig_kill_box(&rig, &boxes[i], &gone);
		proof_is_zero(&gone.proof);
	}
	pause_ms(300);
	assert_int_equal(process_fds(rig.pid), fds);
	down();
}

/* All at once, asked before the first is answered. */
static void
test_burst(void **state)
{
	enum { N = 60 };
	static struct box boxes[N];
	struct limits l = rig_limits();
	size_t answered = 0, gone = 0;

	(void)state;
	up();
	for (size_t i = 0; i < N; i++)
		rig_spawn_ask(&rig, &boxes[i], &l, 60000);
	for (size_t i = 0; i < N; i += 3)
		PUT(KILL, kill, {.sandbox = boxes[i].id, .reason = SANDBOX_REASON_KILLED});
	while (answered + gone < N + N / 3 || gone < N / 3) {
		struct ipc_msg in;

		if (!rig_next(&rig, 2000, &in))
			break;
		answered += in.type == MSG_SPAWNED;
		if (in.type == MSG_GONE) {
			struct msg_gone m;
			struct err err;

			assert_int_equal(msg_gone_get(in.body, &m, &err), 0);
			if (m.reason != SANDBOX_REASON_KILLED)
				fail_msg("gone for reason %d", (int)m.reason);
			/* One whose remains were told before is told again when they are gone. */
			gone += m.proof.processes + m.proof.cgroups + m.proof.journal == 0;
		}
		assert_true(in.type == MSG_SPAWNED || in.type == MSG_GONE);
		ipc_msg_done(&in);
	}
	assert_int_equal(gone, N / 3);
	assert_true(answered >= N - N / 3);
	down();
}

int
main(int argc, char **argv)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {TEST(test_facts), TEST(test_two_share_nothing),
		TEST(test_inside), TEST(test_limits_hold), TEST(test_sum_of_processes),
		TEST(test_user_counts), TEST(test_socket_memory), TEST(test_kill_takes_all),
		TEST(test_proof_is_measured), TEST(test_proof_counts_groups), TEST(test_agent_ends),
		TEST(test_relay_ends), TEST(test_ttl), TEST(test_freeze), TEST(test_usage),
		TEST(test_ceilings), TEST(test_templates), TEST(test_broken_engine),
		TEST(test_engine_killed), TEST(test_api), TEST(test_stop),
		TEST(test_stop_with_deaf_engine), TEST(test_supervisor_killed), TEST(test_survivor),
		TEST(test_killed_elsewhere), TEST(test_killed_unknown), TEST(test_killed_reboot),
		TEST(test_bad_starts), TEST(test_burst), TEST(test_storm)};

	if (geteuid() != 0)
		return 77;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
