/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the supervisor that need neither root nor a loop: its readers, its state machine, its numbers. */
#include "supervisor/agent.h"
#include "supervisor/budget.h"
#include "supervisor/hierarchy.h"
#include "supervisor/journal.h"
#include "supervisor/limits.h"
#include "supervisor/measure.h"
#include "supervisor/options.h"
#include "supervisor/phase.h"
#include "supervisor/slot.h"
#include "supervisor/text.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- text ---- */

static void
test_text(void **state)
{
	struct view rest = view_str("one  two\n\nthree"), v;

	(void)state;
	assert_true(text_line(&rest, &v) && view_is(v, "one  two"));
	assert_true(view_is(text_word_at(v, 0), "one") && view_is(text_word_at(v, 1), "two"));
	assert_int_equal(text_word_at(v, 2).n, 0);
	assert_true(text_line(&rest, &v) && v.n == 0);
	assert_true(text_line(&rest, &v) && view_is(v, "three"));
	assert_false(text_line(&rest, &v));
	assert_true(text_list_has(view_str("rw,nosuid,nodev"), ',', "nosuid"));
	assert_true(text_list_has(view_str("rw"), ',', "rw"));
	assert_false(text_list_has(view_str("rw,nosuidx"), ',', "nosuid"));
	assert_false(text_list_has(view_str(""), ',', "nosuid"));
	assert_true(text_key(view_str("low 1\noom_kill_x 7\noom_kill 3\n"), "oom_kill", &v) &&
		    view_is(v, "3"));
	assert_false(text_key(view_str("oom_kill\n"), "oom_kill", &v));
	assert_false(text_key(view_str(""), "oom_kill", &v));
}

/* ---- hierarchies ---- */

static const char mounts[] =
	"20 1 0:1 / / rw - ext4 /dev/x rw\n"
	"30 20 0:2 / /cg/memory rw,relatime - cgroup cgroup rw,memory\n"
	"31 20 0:3 / /cg/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
	"32 20 0:4 /docker/1 /cg/pids rw - cgroup cgroup rw,pids\n"
	"33 20 0:5 / /cg/unified rw - cgroup2 cgroup2 rw\n"
	"34 20 0:6 / /not rw - tmpfs cgroup rw,freezer\n";
static const char own[] =
	"5:memory:/a/b\n4:cpu,cpuacct:/\n3:pids:/docker/1/c\n2:freezer:/\n0::/u\n";

static void
finds(const char *controller, const char *where)
{
	char dir[64];

	assert_int_equal(
		hierarchy_find(view_str(mounts), view_str(own), controller, dir, sizeof(dir)), 0);
	assert_string_equal(dir, where);
}

static void
test_hierarchy(void **state)
{
	char dir[64];

	(void)state;
	finds("memory", "/cg/memory/a/b");
	finds("cpu", "/cg/cpu,cpuacct/");
	finds("cpuacct", "/cg/cpu,cpuacct/");
	finds("pids", "/cg/pids/c");
	finds(NULL, "/cg/unified/u");
	assert_int_equal(
		hierarchy_find(view_str(mounts), view_str(own), "freezer", dir, sizeof(dir)),
		-ENOENT);
	assert_int_equal(
		hierarchy_find(view_str(mounts), view_str(own), "mem", dir, sizeof(dir)), -ENOENT);
	assert_int_equal(
		hierarchy_find(view_str(""), view_str(own), "memory", dir, sizeof(dir)), -ENOENT);
	assert_int_equal(hierarchy_find(view_str(mounts), view_str(""), "memory", dir, sizeof(dir)),
		-ENOENT);
	assert_int_equal(
		hierarchy_find(view_str(mounts), view_str(own), "memory", dir, 8), -ERANGE);
	/* A group that is not below the mounted root: all that can be seen is that root. */
	assert_int_equal(hierarchy_find(view_str(mounts), view_str("3:pids:/docker/12\n"), "pids",
				 dir, sizeof(dir)),
		0);
	assert_string_equal(dir, "/cg/pids/");
}

/* ---- journal ---- */

static const char head[] = "demilune-journal 2 0123-abcd\n";

static int
parse(const char *rest, struct journal_held *ret)
{
	char text[1024];
	struct err err = {0};
	int n = snprintf(text, sizeof(text), "%s%s", head, rest);

	*ret = (struct journal_held){0};
	return journal_parse(view_of(text, (size_t)n), ret, &err);
}

static void
test_journal(void **state)
{
	static const char *const bad[] = {"x\n", "+ a\n", "+ a 1 2\n", "+  1\n", "+ a -1\n",
		"+ a 01\n", "+ a 4294967296\n", "+ A 1\n", "+ a/b 1\n",
		"+ aaaaaaaaaaaaaaaaaaaaaaaaa 1\n", "+ a 1\n+ a 2\n", "- a\n", "+ a 1\n- a\n- a\n",
		"= a sb_0000000000000000 tk_0000000000000000\n", "+ a 1\n= a sb_0 tk_0\n",
		"+ a 1\n= a tk_0000000000000000 sb_0000000000000000\n",
		"+ a 1\n= a sb_0000000000000000\n",
		("+ a 1\n= a sb_0000000000000000 tk_0000000000000000\n= a sb_0000000000000000 "
		 "tk_0000000000000000\n"),
		"\n", "+ a 1 \n", "@ \n", "@ demilune-1\n", "@ /a/../demilune-1\n",
		"@ /a/./demilune-1\n", "@ /a//demilune-1\n", "@ /demilune-1/\n", "@ /a/other-1\n",
		"@ /a\x01/demilune-1\n", "@ /demilune-1/a\n"};
	struct journal_held f;
	struct err err;
	struct id id;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (parse(bad[i], &f) == 0)
			fail_msg("taken: %s", bad[i]);
	assert_int_equal(parse("", &f), 0);
	assert_int_equal(f.n, 0);
	assert_string_equal(f.boot, "0123-abcd");
	assert_int_equal(parse("+ s1-0 0\n+ s2-1 1\n= s2-1 sb_000000000000000g "
			       "tk_0000000000000001\n- s1-0\n+ s3",
				 &f),
		0);
	assert_int_equal(f.n, 1);
	assert_string_equal(f.entries[0].name, "s2-1");
	assert_int_equal(f.entries[0].slot, 1);
	assert_true(f.entries[0].named);
	assert_int_equal(id_parse(view_str("sb_000000000000000g"), ID_SANDBOX, &id), 0);
	assert_true(id_eq(&id, &f.entries[0].sandbox));
	journal_held_done(&f);
	/* Nothing at all, or cut in the first line: there was no run. */
	assert_int_equal(journal_parse(view_str(""), &f, &err), 0);
	assert_string_equal(f.boot, "");
	assert_int_equal(journal_parse(view_str("demilune-jour"), &f, &err), 0);
	assert_true(journal_parse(view_str("demilune-journal 2 \n"), &f, &err) < 0);
	assert_true(journal_parse(view_str("demilune-journal 2 a/b\n"), &f, &err) < 0);
	assert_true(journal_parse(
			    view_str("demilune-journal 2 0123456789012345678901234567890123456\n"),
			    &f, &err) < 0);
	assert_true(journal_parse(view_str("demilune-journal 1 0123abcd\n"), &f, &err) < 0);
	assert_true(journal_parse(view_str("hello\n"), &f, &err) < 0);
	assert_int_equal(parse("@ /cg/a b/demilune-1\n@ /demilune-2\n+ a 1\n", &f), 0);
	assert_int_equal(f.nparents, 2);
	assert_string_equal(f.parents[0], "/cg/a b/demilune-1");
	assert_string_equal(f.parents[1], "/demilune-2");
	journal_held_done(&f);
}

static off_t
size_of(int dir)
{
	struct stat st;

	assert_int_equal(fstatat(dir, "journal", &st, 0), 0);
	return st.st_size;
}

/* One sandbox stays while very many others come and go: the file stays small and still names the one. */
static void
test_journal_stays_small(void **state)
{
	char path[] = "/tmp/demilune-journal-XXXXXX", name[JOURNAL_NAME];
	struct journal j;
	struct journal_held held = {.boot = "0-1"}, back;
	struct err err = {0};
	struct id sandbox, task;
	off_t most = 0;
	int dir;

	(void)state;
	assert_non_null(mkdtemp(path));
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir >= 0);
	id_new(&sandbox);
	id_new(&task);
	assert_int_equal(journal_held_parent(&held, "/cg/demilune-1", &err), 0);
	assert_int_equal(journal_begin(&j, dir, &held, &err), 0);
	assert_int_equal(journal_add(&j, "stays", 7, &err), 0);
	assert_int_equal(journal_name(&j, "stays", &sandbox, &task, &err), 0);
	for (unsigned i = 0; i < 50000; i++) {
		(void)snprintf(name, sizeof(name), "s%u", i);
		assert_int_equal(journal_add(&j, name, i % 1000, &err), 0);
		assert_int_equal(journal_name(&j, name, &sandbox, &task, &err), 0);
		assert_int_equal(journal_drop(&j, name, &err), 0);
		if (i % 100 == 0 && size_of(dir) > most)
			most = size_of(dir);
	}
	assert_true(most > 0 && most < 1 << 19);
	assert_int_equal(journal_add(&j, "last", 8, &err), 0);
	assert_int_equal(journal_read(dir, &back, &err), 0);
	assert_int_equal(back.nparents, 1);
	assert_string_equal(back.parents[0], "/cg/demilune-1");
	assert_int_equal(back.n, 2);
	assert_string_equal(back.entries[0].name, "stays");
	assert_int_equal(back.entries[0].slot, 7);
	assert_true(back.entries[0].named && id_eq(&back.entries[0].sandbox, &sandbox));
	assert_string_equal(back.entries[1].name, "last");
	assert_false(back.entries[1].named);
	journal_held_done(&back);
	assert_int_equal(journal_drop(&j, "last", &err), 0);
	assert_int_equal(journal_drop(&j, "stays", &err), 0);
	journal_end(&j);
	assert_int_equal(faccessat(dir, "journal", F_OK, 0), -1);
	assert_int_equal(close(dir), 0);
	assert_int_equal(rmdir(path), 0); /* nothing else was left in it */
}

/* One that grew while the disk was full: read all the same; a line that never ends is refused. */
static void
test_journal_large(void **state)
{
	char path[] = "/tmp/demilune-journal-XXXXXX";
	struct journal_held back;
	struct err err = {0};
	FILE *f;
	int dir;

	(void)state;
	assert_non_null(mkdtemp(path));
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f = fdopen(openat(dir, "journal", O_WRONLY | O_CREAT | O_CLOEXEC, 0600), "w");
	assert_non_null(f);
	assert_true(fputs(head, f) >= 0);
	for (unsigned i = 0; i < 400000; i++)
		assert_true((i == 77 ? fprintf(f, "+ s%u 77\n", i)
				     : fprintf(f, "+ s%u 1\n- s%u\n", i, i)) > 0);
	assert_int_equal(fclose(f), 0);
	assert_true(size_of(dir) > 8 << 20);
	assert_int_equal(journal_read(dir, &back, &err), 0);
	assert_int_equal(back.n, 1);
	assert_int_equal(back.entries[0].slot, 77);
	journal_held_done(&back);

	f = fdopen(openat(dir, "journal", O_WRONLY | O_TRUNC | O_CLOEXEC), "w");
	assert_non_null(f);
	assert_true(fprintf(f, "%s@ /%09000d", head, 0) > 0);
	assert_int_equal(fclose(f), 0);
	assert_true(journal_read(dir, &back, &err) < 0);
	assert_int_equal(unlinkat(dir, "journal", 0), 0);
	assert_int_equal(close(dir), 0);
	assert_int_equal(rmdir(path), 0);
}

/* ---- the agent's image ---- */

/* No sandbox can change the program that all others execute. */
static void
test_agent_is_sealed(void **state)
{
	struct err err = {0};
	int fd = agent_load("/proc/self/exe", &err), again;
	char path[64];

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(
		fcntl(fd, F_GET_SEALS), F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDWR | O_CLOEXEC);
	assert_true(geteuid() != 0 || again >= 0);
	if (again >= 0) {
		assert_int_equal(pwrite(again, "x", 1, 0), -1);
		assert_int_equal(errno, EPERM);
		assert_int_equal(ftruncate(again, 0), -1);
		assert_int_equal(close(again), 0);
	}
	assert_int_equal(close(fd), 0);
	assert_true(agent_load("/", &err) < 0);
	assert_true(agent_load("/nowhere", &err) < 0);
}

/* ---- measuring ---- */

static const char status[] =
	"Name:\tx\nCapInh:\t0000000000000000\nCapPrm:\t00000000000001e0\nCapEff:"
	"\t00000000000001e0\n"
	"CapBnd:\t000001ffffffffff\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"
	"Seccomp_filters:\t1\n";

static void
test_measure_status(void **state)
{
	struct facts f = {0};
	struct err err;

	(void)state;
	assert_int_equal(measure_status(view_str(status), &f, &err), 0);
	assert_int_equal(f.cap_permitted, 0x1e0);
	assert_true(f.cap_bounding == 0x1ffffffffffULL);
	assert_int_equal(f.no_new_privs, 1);
	assert_int_equal(f.seccomp_mode, 2);
	/* Without any one of its lines it is refused, not taken for 0. */
	for (const char *p = strchr(status, 'C'); p != NULL && strncmp(p, "Seccomp_", 8) != 0;
		p = strchr(p, '\n') + 1) {
		char text[512];
		size_t before = (size_t)(p - status), line = strcspn(p, "\n") + 1;

		(void)snprintf(text, sizeof(text), "%.*s%s", (int)before, status, p + line);
		assert_int_equal(measure_status(view_str(text), &f, &err), -EBADMSG);
	}
}

static void
test_measure_limits(void **state)
{
	static const char good[] =
		"Limit                     Soft Limit           Hard Limit           Units     \n"
		"Max open files            64                   256                  files     \n"
		"Max pending signals       1                    4096                 signals   \n";
	static const char *const bad[] = {"", "Max open files 1 2 files\n",
		"Max open files 1 2 files\nMax pending signals 4096\n",
		"Max open files 1 x files\nMax pending signals 1 2 signals\n"};
	struct facts f = {0};
	struct err err;

	(void)state;
	assert_int_equal(measure_limits(view_str(good), &f, &err), 0);
	assert_int_equal(f.open_files, 256);
	assert_int_equal(f.pending_signals, 4096);
	assert_int_equal(measure_limits(view_str("Max open files 1 unlimited files\n"
						 "Max pending signals 1 99999999999 signals\n"),
				 &f, &err),
		0);
	assert_int_equal(f.open_files, UINT32_MAX);
	assert_int_equal(f.pending_signals, UINT32_MAX);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(measure_limits(view_str(bad[i]), &f, &err), -EBADMSG);
}

static void
test_measure_id_map(void **state)
{
	static const char *const bad[] = {"", "0 1\n", "1 2 3\n", "0 1 2\n1 5 6\n", "0 -1 5\n",
		"0 1 99999999999\n", "a b c\n"};
	uint32_t base, count;
	struct err err;

	(void)state;
	assert_int_equal(
		measure_id_map(view_str("         0 2147483648      65536\n"), &base, &count, &err),
		0);
	assert_true(base == 2147483648U && count == 65536);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(measure_id_map(view_str(bad[i]), &base, &count, &err), -EBADMSG);
}

static void
test_measure_mounts(void **state)
{
	struct places places = {.n = 1, .place = {{"/workspace"}}};
	struct facts f = {0};

	(void)state;
	measure_mounts(view_str("1 0 0:1 / / ro,nosuid,nodev,idmapped - erofs x ro\n"
				"2 1 0:2 /0 /workspace rw,nosuid,nodev - tmpfs x rw\n"
				"3 1 0:3 / /dev ro,nosuid - tmpfs x rw\n"
				"4 1 0:4 / /etc/passwd rw - ext4 /dev/sda rw\n"
				"5 1 0:4 /null /proc/kcore ro,nosuid,nodev - tmpfs x rw\n"
				"6 1 0:4 / /proc/kcore2 ro,nosuid,nodev - tmpfs x rw\n"),
		&places, &f);
	assert_int_equal(f.mounts, 6);
	assert_int_equal(f.mounts_writable, 2);
	assert_int_equal(f.mounts_unexpected, 2);
	assert_int_equal(f.mounts_without_nosuid, 1);
	assert_int_equal(f.mounts_without_nodev, 2);
	assert_int_equal(f.root_read_only, 1);
	assert_int_equal(f.root_idmapped, 1);
	f = (struct facts){0};
	measure_mounts(view_str("1 0 0:1 / / rw,nosuid,nodev - erofs x ro\n"), &places, &f);
	assert_int_equal(f.root_read_only, 0);
	assert_int_equal(f.root_idmapped, 0);
}

static void
test_measure_network(void **state)
{
	static const char lo4[] =
		"Main:\n  +-- 127.0.0.0/8 2 0 2\n     +-- 127.0.0.0/31 1 0 0\n"
		"        |-- 127.0.0.0\n           /32 link BROADCAST\n           /8 host LOCAL\n"
		"        |-- 127.0.0.1\n           /32 host LOCAL\n"
		"     |-- 127.255.255.255\n        /32 link BROADCAST\n";
	static const struct {
		const char *trie;
		unsigned routes, captured;
	} rows4[] = {{lo4, 0, 0}, {"", 0, 0},
		{"  |-- 198.18.0.0\n     /15 host LOCAL\nLocal:\n  |-- 198.18.0.0\n     /15 host "
		 "LOCAL\n",
			0, 1},
		{"  |-- 0.0.0.0\n     /0 host LOCAL\n", 0, 4},
		{"  |-- 192.0.0.8\n     /32 host LOCAL\n", 0, 16},
		{"  |-- 192.0.0.0\n     /24 host LOCAL\n", 1, 0},
		{"  |-- 0.0.0.0\n     /0 universe UNICAST\n", 1, 0},
		{"  |-- 198.18.0.0\n     /15 link UNICAST\n     /16 host LOCAL\n", 2, 0},
		{"  |-- 198.18.0.0\n     /14 host LOCAL\n", 1, 0},
		{"  |-- 10.0.0.0\n     /8 link UNICAST\n  |-- 10.0.0.1\n     /32 host LOCAL\n", 2,
			0},
		{"     /15 host LOCAL\n", 1, 0}};
#define ROUTE6(to, length, flags, device)                                                      \
	to " " length " 00000000000000000000000000000000 00 00000000000000000000000000000000 " \
	   "00000400 00000001 00000000 " flags "       " device "\n"
#define NO6 "00000000000000000000000000000000"
	static const struct {
		const char *table;
		unsigned routes, captured;
	} rows6[] = {{"", 0, 0}, {ROUTE6(NO6, "00", "00200200", "lo"), 0, 0},
		{ROUTE6("00000000000000000000000000000001", "80", "80200001", "lo"), 0, 0},
		{ROUTE6("fd005eed000000000000000000000000", "40", "80000001", "lo"), 0, 2},
		{ROUTE6(NO6, "00", "80000001", "lo"), 0, 8},
		{ROUTE6("01000000000000010000000000000001", "80", "80000001", "lo"), 0, 32},
		{ROUTE6(NO6, "00", "00000001", "lo"), 1, 0},
		{ROUTE6(NO6, "00", "80000001", "eth0"), 1, 0},
		{ROUTE6("fd005eed000000000000000000000000", "30", "80000001", "lo"), 1, 0},
		{ROUTE6("fe800000000000000000000000000000", "40", "00000001", "eth0"), 1, 0},
		{"x\n", 1, 0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows4); i++) {
		struct facts f = {0};

		measure_routes4(view_str(rows4[i].trie), &f);
		assert_int_equal(f.routes, rows4[i].routes);
		assert_int_equal(f.captured, rows4[i].captured);
	}
	for (size_t i = 0; i < ARRAY_LEN(rows6); i++) {
		struct facts f = {0};

		measure_routes6(view_str(rows6[i].table), &f);
		assert_int_equal(f.routes, rows6[i].routes);
		assert_int_equal(f.captured, rows6[i].captured);
	}
	assert_int_equal(measure_interfaces(view_str("h\nh\n lo: 1\n")), 1);
	assert_int_equal(measure_interfaces(view_str("h\nh\n lo: 1\neth0: 1\n")), 2);
}

/* ---- the machine ---- */

/* Every pair: those of this table lead there, all others are refused and change nothing. */
static void
test_phases(void **state)
{
	static const struct {
		enum phase at;
		enum phase_event event;
		enum phase next;
	} rows[] = {
#define STEP(at, event, next) {PHASE_##at, PHASE_EVENT_##event, PHASE_##next},
#include "supervisor/sandbox.fsm"
#undef STEP
	};
	size_t taken = 0;

	(void)state;
	for (enum phase p = 0; p < PHASE_MAX; p++)
		for (enum phase_event e = 0; e < PHASE_EVENT_MAX; e++) {
			enum phase next = PHASE_MAX, want = PHASE_MAX;
			struct err err = {0};

			for (size_t i = 0; i < ARRAY_LEN(rows); i++)
				if (rows[i].at == p && rows[i].event == e)
					want = rows[i].next;
			assert_int_equal(
				phase_next(p, e, &next, &err), want == PHASE_MAX ? -EPROTO : 0);
			assert_int_equal(next, want);
			taken += want != PHASE_MAX;
		}
	assert_int_equal(taken, ARRAY_LEN(rows)); /* no pair twice */
	/* Killing is possible from everywhere before it, and there is no way back from it. */
	for (enum phase p = 0; p < PHASE_MAX; p++) {
		enum phase next;
		struct err err;

		assert_int_equal(
			phase_next(p, PHASE_EVENT_KILL, &next, &err) == 0, p < PHASE_KILLING);
	}
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].at >= PHASE_KILLING)
			assert_true(rows[i].next > rows[i].at);
}

static void
test_slots(void **state)
{
	struct slots s;
	struct err err;
	uint32_t slot;

	(void)state;
	assert_int_equal(slots_init(&s, 65536, 3, &err), 0);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(slot_take(&s, &slot, &err), 0);
		assert_int_equal(slot, i);
		assert_int_equal(slot_uid(&s, slot), 65536 + i * 65536);
	}
	assert_int_equal(slot_take(&s, &slot, &err), -EAGAIN);
	slot_give(&s, 1);
	assert_int_equal(slot_take(&s, &slot, &err), 0);
	assert_int_equal(slot, 1);
	/* As late as possible. */
	slot_give(&s, 1);
	slot_give(&s, 2);
	assert_int_equal(slot_take(&s, &slot, &err), 0);
	assert_int_equal(slot, 2);
	slots_done(&s);
	assert_int_equal(slots_init(&s, 0, 1, &err), -ERANGE);
	assert_int_equal(slots_init(&s, 65535, 1, &err), -ERANGE);
	assert_int_equal(slots_init(&s, UINT32_MAX - 65535, 1, &err), -ERANGE);
	assert_int_equal(slots_init(&s, UINT32_MAX - 65536, 1, &err), 0);
	slots_done(&s);
	assert_int_equal(slots_init(&s, 65536, UINT32_MAX, &err), -ERANGE);
}

static int
options(struct options *ret, int n, ...)
{
	char words[8][32] = {"x"}, *argv[9] = {words[0]};
	struct err err;
	va_list args;

	va_start(args, n);
	for (int i = 1; i <= n; i++) {
		(void)snprintf(words[i], sizeof(words[i]), "%s", va_arg(args, const char *));
		argv[i] = words[i];
	}
	va_end(args);
	optind = 0;
	return options_read(n + 1, argv, ret, &err);
}

static void
test_budget(void **state)
{
	struct err err = {0};
	uint32_t n = 0;

	(void)state;
	assert_int_equal(budget_pids(0, 32768, 192730, &n, &err), 0);
	assert_int_equal(n, 28672);
	assert_int_equal(budget_pids(0, 4194304, 7700, &n, &err), 0);
	assert_int_equal(n, 7700 - 1024);
	assert_int_equal(budget_pids(31744, 32768, 192730, &n, &err), 0);
	assert_int_equal(n, 31744);
	assert_int_equal(budget_pids(31745, 32768, 192730, &n, &err), -ERANGE);
	assert_non_null(strstr(err.text, "kernel.pid_max"));
	assert_int_equal(budget_pids(6677, 4194304, 7700, &n, &err), -ERANGE);
	assert_int_equal(budget_pids(0, 2048, 192730, &n, &err), -ERANGE);
	assert_int_equal(budget_pids(1, 192730, 0, &n, &err), -ERANGE);

	/* All sandboxes together never take what others need. */
	assert_int_equal(budget_ptys(4096, 1024, 256, &n, &err), 0);
	assert_int_equal(n, 9);
	assert_int_equal(budget_ptys(4096, 1024, 2, &n, &err), 0);
	assert_int_equal(n, 64);
	assert_int_equal(budget_ptys(4096, 1024, 2304, &n, &err), 0);
	assert_int_equal(n, 1);
	assert_int_equal(budget_ptys(4096, 1024, 2305, &n, &err), -ERANGE);
	assert_non_null(strstr(err.text, "kernel.pty.max"));
	assert_int_equal(budget_ptys(1024, 1024, 1, &n, &err), -ERANGE);
	assert_int_equal(budget_ptys(10, 1024, 1, &n, &err), -ERANGE);
}

static void
test_options(void **state)
{
	struct options o;

	(void)state;
	assert_int_equal(options(&o, 0), 0);
	assert_null(o.config);
	assert_false(o.help);
	assert_int_equal(options(&o, 1, "--help"), 0);
	assert_true(o.help);
	assert_int_equal(options(&o, 2, "--config", "f"), 0);
	assert_non_null(o.config);
	assert_int_equal(options(&o, 1, "--config"), -EINVAL);
	assert_int_equal(options(&o, 1, "--nonsense"), -EINVAL);
	assert_int_equal(options(&o, 1, "-x"), -EINVAL);
	assert_int_equal(options(&o, 1, "word"), -EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_text),
		cmocka_unit_test(test_hierarchy), cmocka_unit_test(test_journal),
		cmocka_unit_test(test_journal_stays_small), cmocka_unit_test(test_journal_large),
		cmocka_unit_test(test_measure_status), cmocka_unit_test(test_measure_id_map),
		cmocka_unit_test(test_measure_limits), cmocka_unit_test(test_measure_mounts),
		cmocka_unit_test(test_measure_network), cmocka_unit_test(test_phases),
		cmocka_unit_test(test_slots), cmocka_unit_test(test_budget),
		cmocka_unit_test(test_options), cmocka_unit_test(test_agent_is_sealed)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
