/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entering the jail, looked at from inside (what is refused) and from outside
 * (/proc/<pid>/status); jails built with one step missing, which the proofs must find;
 * kernels that lack a part, which must be refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/jail/caps.h"
#include "lib/jail/jail.h"

#include "test-loose-syscalls.h"
#include "test-syscalls.h"
#include "test-outer-syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { ID = 64321, SKIPPED = 77 };

#define BIT(cap) (1ull << (cap))

static const struct jail_rlimit limits[] = {{RLIMIT_NOFILE, 64}, {RLIMIT_FSIZE, 1 << 20}};

static const struct jail tight = {
	.uid = ID,
	.gid = ID,
	.rlimits = limits,
	.rlimits_n = ARRAY_LEN(limits),
	.filter = test_syscalls,
	.filter_n = ARRAY_LEN(test_syscalls),
};

/* What a child found: 0, or a line number in the parent's eyes. */
#define CHECK(x)                                                                                \
	do {                                                                                    \
		if (!(x)) {                                                                     \
			(void)fprintf(stderr, "line %d: %s (errno %d)\n", __LINE__, #x, errno); \
			_exit(1);                                                               \
		}                                                                               \
	} while (0)

static int
in_child(void (*fn)(void))
{
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void
enter(const struct jail *j)
{
	struct err err = {.text = ""};

	if (jail_enter(j, &err) != 0 || jail_prove(j, &err) != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		_exit(1);
	}
}

/* ---- inside ---- */

static void
inside_nothing_opens(void)
{
	enter(&tight);
	CHECK(openat(AT_FDCWD, "/", O_RDONLY | O_DIRECTORY) == -1 && errno == EACCES);
	CHECK(openat(AT_FDCWD, "/etc/passwd", O_RDONLY) == -1 && errno == EACCES);
	CHECK(openat(AT_FDCWD, "/dev/null", O_WRONLY) == -1 && errno == EACCES);
	CHECK(openat(AT_FDCWD, "/tmp/demilune-jail-test", O_WRONLY | O_CREAT, 0600) == -1 &&
		errno == EACCES);
}

static void
inside_no_tcp(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(47231)};
	int s;

	enter(&tight);
	s = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(s >= 0);
	any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(bind(s, (struct sockaddr *)&any, sizeof(any)) == -1 && errno == EACCES);
}

static void
inside_descriptors_bounded(void)
{
	int n = 0;

	enter(&tight);
	while (fcntl(0, F_DUPFD_CLOEXEC, 0) >= 0)
		CHECK(++n < 64);
	CHECK(errno == EMFILE);
}

static void
inside_killed_by_unlisted(void)
{
	enter(&tight);
	(void)syscall(SYS_getuid);
}

static void
inside_killed_by_exec_memory(void)
{
	enter(&tight);
	(void)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void
inside_killed_by_other_family(void)
{
	enter(&tight);
	(void)socket(AF_INET6, SOCK_STREAM, 0);
}

static void
inside_killed_by_exec(void)
{
	char *const argv[] = {NULL};

	enter(&tight);
	(void)execve("/bin/true", argv, argv);
}

static void
inside_killed_by_setuid(void)
{
	enter(&tight);
	_exit(setresuid(0, 0, 0) == 0);
}

static void
is_closed_from_inside(void **state UNUSED)
{
	void (*const lives[])(void) = {
		inside_nothing_opens, inside_no_tcp, inside_descriptors_bounded};
	void (*const dies[])(void) = {inside_killed_by_unlisted, inside_killed_by_exec_memory,
		inside_killed_by_other_family, inside_killed_by_exec, inside_killed_by_setuid};

	for (size_t i = 0; i < ARRAY_LEN(lives); i++)
		assert_int_equal(in_child(lives[i]), 0);
	for (size_t i = 0; i < ARRAY_LEN(dies); i++) {
		int status = in_child(dies[i]);

		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGSYS);
		assert_false(WCOREDUMP(status));
	}
}

/* A process of the same uid outside: Landlock's signal scope (ABI 6) stands between. */
static void
does_not_signal_its_uid(void **state UNUSED)
{
	int p[2], status = 0;
	pid_t other, pid;

	if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) < 6)
		skip();
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	other = fork();
	assert_true(other >= 0);
	if (other == 0) {
		char c;

		CHECK(close(p[1]) == 0 && setresgid(ID, ID, ID) == 0 && setresuid(ID, ID, ID) == 0);
		_exit(read(p[0], &c, 1) == 0 ? 0 : 1);
	}
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		enter(&tight);
		CHECK(kill(other, 0) == -1 && errno == EPERM);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(close(p[1]), 0);
	assert_int_equal(waitpid(other, &status, 0), other);
	assert_int_equal(status, 0);
	assert_int_equal(close(p[0]), 0);
}

/* ---- directories ---- */

static char place[] = "/tmp/demilune-jail-XXXXXX"; /* made by main: r/ and w/, owned by ID */

static int
open_below(const char *name)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%s/%s", place, name);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void
inside_directories(void)
{
	int r = open_below("r"), w = open_below("w");
	const struct jail_path paths[] = {{r, JAIL_READ}, {w, JAIL_READ | JAIL_WRITE}};
	struct jail j = tight;
	int fd;

	CHECK(r >= 0 && w >= 0);
	j.paths = paths;
	j.paths_n = ARRAY_LEN(paths);
	enter(&j);
	CHECK(openat(r, "file", O_RDONLY) >= 0);
	CHECK(openat(r, "file", O_WRONLY) == -1 && errno == EACCES);
	CHECK(openat(r, "new", O_WRONLY | O_CREAT, 0600) == -1 && errno == EACCES);
	CHECK(openat(r, "../w/../../../etc/passwd", O_RDONLY) == -1 && errno == EACCES);
	fd = openat(w, "new", O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0 && write(fd, "x", 1) == 1);
	CHECK(openat(AT_FDCWD, "/etc/passwd", O_RDONLY) == -1 && errno == EACCES);
}

static void
refuses_bad_paths(void)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), dir = open_below("r");
	const struct jail_path bad[] = {{dir, 0}, {dir, 64}, {null, JAIL_READ}, {null, JAIL_EXEC},
		{-1, JAIL_READ}, {4000, JAIL_READ}};
	struct err err;

	CHECK(jail_privs_lock(&err) == 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(jail_landlock_all(&bad[i], 1, NULL, 0, &err) < 0);
}

static void
opens_only_what_is_listed(void **state UNUSED)
{
	assert_int_equal(in_child(inside_directories), 0);
	assert_int_equal(in_child(refuses_bad_paths), 0);
}

/* ---- outside ---- */

static void
status_has(const char *status, const char *line)
{
	if (strstr(status, line) == NULL)
		fail_msg("no \"%s\" in:\n%s", line + 1, status);
}

/* Reads /proc/<pid>/status of a child that has entered j; *ret_owner: uid that owns its mem. */
static void
look_from_outside(const struct jail *j, char *ret_status, size_t max, uid_t *ret_owner)
{
	int ready[2], go[2], status = 0, fd;
	char c, path[64];
	struct stat st;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)close(go[1]);
		enter(j);
		CHECK(write(ready[1], "r", 1) == 1);
		_exit(read(go[0], &c, 1) == 0 ? 0 : 1);
	}
	assert_int_equal(close(ready[1]), 0);
	assert_int_equal(read(ready[0], &c, 1), 1);
	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, ret_status, max - 1);
	assert_true(fd >= 0 && n > 0);
	ret_status[n] = '\0';
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	assert_int_equal(stat(path, &st), 0);
	*ret_owner = st.st_uid;
	assert_int_equal(close(fd) | close(ready[0]) | close(go[0]) | close(go[1]), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void
is_seen_from_outside(void **state UNUSED)
{
	char status[8192];
	uid_t owner = 1;

	look_from_outside(&tight, status, sizeof(status), &owner);
	status_has(status, "\nUid:\t64321\t64321\t64321\t64321\n");
	status_has(status, "\nGid:\t64321\t64321\t64321\t64321\n");
	status_has(status, "\nGroups:\t \n");
	status_has(status, "\nCapInh:\t0000000000000000\n");
	status_has(status, "\nCapPrm:\t0000000000000000\n");
	status_has(status, "\nCapEff:\t0000000000000000\n");
	status_has(status, "\nCapBnd:\t0000000000000000\n");
	status_has(status, "\nCapAmb:\t0000000000000000\n");
	status_has(status, "\nNoNewPrivs:\t1\n");
	status_has(status, "\nSeccomp:\t2\n");
	status_has(status, "\nThreads:\t1\n");
	assert_int_equal(owner, 0); /* not dumpable: /proc/<pid> belongs to root */
}

static void
keeps_what_the_supervisor_keeps(void **state UNUSED)
{
	static const struct jail j = {
		.keep = BIT(CAP_SYS_ADMIN) | BIT(CAP_SETUID),
		.mounts = true,
		.filter = test_loose_syscalls,
		.filter_n = ARRAY_LEN(test_loose_syscalls),
	};
	char status[8192];
	uid_t owner;

	look_from_outside(&j, status, sizeof(status), &owner);
	status_has(status, "\nUid:\t0\t0\t0\t0\n");
	status_has(status, "\nCapInh:\t0000000000000000\n");
	status_has(status, "\nCapPrm:\t0000000000200080\n");
	status_has(status, "\nCapEff:\t0000000000200080\n");
	status_has(status, "\nCapBnd:\t0000000000200080\n");
	status_has(status, "\nNoNewPrivs:\t1\n");
	status_has(status, "\nSeccomp:\t2\n");
}

/* ---- broken jails ---- */

/* The steps of jail_enter; a broken jail is built with some of them left out or half done. */
enum step {
	S_LIMITS = 1,
	S_GROUPS = 2,
	S_GID = 4,
	S_UID = 8,
	S_UID_SAVED = 16, /* with S_UID: the saved uid too */
	S_BOUND = 32,
	S_CAPS = 64,
	S_NNP = 128,
	S_DUMP = 256,
	S_LANDLOCK = 512,
	S_FILTER = 1024,
	S_MARK = 2048,
	S_SECURE = 4096,
	S_ALL = 8191,
};

static const struct jail loose = {
	.uid = ID,
	.gid = ID,
	.rlimits = limits,
	.rlimits_n = ARRAY_LEN(limits),
	.filter = test_loose_syscalls,
	.filter_n = ARRAY_LEN(test_loose_syscalls),
};

static void
build_ids(unsigned int steps)
{
	gid_t groups[] = {1, 2};

	CHECK(setgroups((steps & S_GROUPS) != 0 ? 0 : 2, groups) == 0);
	if ((steps & S_BOUND) != 0)
		for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
			CHECK(prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0);
	/* Locked securebits forbid keeping capabilities, so the broken jail has neither. */
	if ((steps & S_CAPS) == 0)
		CHECK(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0);
	else if ((steps & S_SECURE) != 0)
		CHECK(prctl(PR_SET_SECUREBITS, SECUREBITS, 0, 0, 0) == 0);
	if ((steps & S_GID) != 0)
		CHECK(setresgid(ID, ID, ID) == 0);
	if ((steps & S_UID) != 0)
		CHECK(setresuid(ID, ID, (steps & S_UID_SAVED) != 0 ? ID : 0) == 0);
}

/* Builds, and says what the proofs say: of the drop, or of the whole. */
static void
build(unsigned int steps, bool of_drop, struct err *err)
{
	if ((steps & S_LIMITS) != 0)
		CHECK(jail_rlimits_set(limits, ARRAY_LEN(limits), err) == 0);
	/* Without no_new_privs only root can load a filter: in front of the rest, then. */
	if ((steps & S_NNP) == 0)
		CHECK(jail_filter_load(loose.filter, loose.filter_n, err) == 0);
	build_ids(steps);
	if ((steps & S_NNP) != 0)
		CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_DUMPABLE, (steps & S_DUMP) == 0, 0, 0, 0) == 0);
	if ((steps & S_LANDLOCK) != 0 && (steps & S_NNP) != 0)
		CHECK(jail_landlock_all(NULL, 0, NULL, 0, err) == 0);
	if (of_drop) {
		CHECK(jail_prove_drop(&loose, err) != 0);
		return;
	}
	if ((steps & S_FILTER) != 0 && (steps & S_NNP) != 0)
		CHECK((steps & S_MARK) != 0
				? jail_filter_load(loose.filter, loose.filter_n, err) == 0
				: jail_filter_load(test_outer_syscalls,
					  ARRAY_LEN(test_outer_syscalls), err) == 0);
	CHECK(jail_prove(&loose, err) != 0);
}

static void
proofs_find_what_is_missing(void **state UNUSED)
{
	static const struct {
		unsigned int missing;
		bool of_drop;
		const char *text;
	} rows[] = {
		{S_UID, true, "uid 0 can be regained"},
		{S_UID_SAVED, true, "uid 0 can be regained"},
		{S_CAPS, true, "a capability can be raised"},
		{S_GID, true, "gid 0 can be regained"},
		{S_LANDLOCK, true, "\"/\" can be listed"},
		{S_UID, false, ": uid"},
		{S_UID_SAVED, false, ": uid"},
		{S_GID, false, ": gid"},
		{S_GROUPS, false, "supplementary groups"},
		{S_BOUND, false, "bounding set"},
		{S_CAPS, false, "capability sets"},
		{S_NNP, false, "no_new_privs"},
		{S_DUMP, false, "dumpable"},
		{S_LIMITS, false, "core dumps"},
		{S_FILTER, false, "no syscall filter"},
		{S_MARK, false, "not the one listed"},
		{S_SECURE, false, "securebits"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int status = 0;
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0) {
			struct err err = {.text = ""};

			build(S_ALL & ~rows[i].missing, rows[i].of_drop, &err);
			if (strstr(err.text, rows[i].text) == NULL)
				(void)fprintf(stderr, "row %zu: \"%s\"\n", i, err.text);
			_exit(strstr(err.text, rows[i].text) == NULL);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (status != 0)
			fail_msg("row %zu: the proof does not say \"%s\"", i, rows[i].text);
	}
}

/* The same builder with nothing missing is proven: the rows above fail for their own reason. */
static void
build_whole(void)
{
	struct err err = {.text = ""};

	CHECK(jail_rlimits_set(limits, ARRAY_LEN(limits), &err) == 0);
	build_ids(S_ALL);
	CHECK(jail_privs_lock(&err) == 0 && jail_landlock_all(NULL, 0, NULL, 0, &err) == 0);
	CHECK(jail_prove_drop(&loose, &err) == 0);
	CHECK(jail_filter_load(loose.filter, loose.filter_n, &err) == 0);
	CHECK(jail_prove(&loose, &err) == 0);
}

static void
whole_jail_is_proven(void **state UNUSED)
{
	assert_int_equal(in_child(build_whole), 0);
}

/* ---- ports ---- */

/* What a connection to this port of loopback, where nobody listens, is answered with. */
static int
connecting(uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	auto_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	return connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0 ? 0 : errno;
}

static void
ports_listed(void)
{
	static const uint16_t ports[] = {3, 60001};
	struct jail j = loose;
	struct err err = {.text = ""};

	build_ids(S_ALL);
	CHECK(jail_privs_lock(&err) == 0);
	CHECK(jail_landlock_all(NULL, 0, ports, ARRAY_LEN(ports), &err) == 0);
	CHECK(connecting(3) == ECONNREFUSED && connecting(60001) == ECONNREFUSED);
	CHECK(connecting(1) == EACCES && connecting(60002) == EACCES);
	j.ports = ports;
	j.ports_n = ARRAY_LEN(ports);
	CHECK(jail_prove_drop(&j, &err) == 0);
	/* The proof tries the first port that is not listed: it is one that is open here. */
	static const uint16_t fewer[] = {1, 2, 60001};

	j.ports = fewer;
	j.ports_n = ARRAY_LEN(fewer);
	CHECK(jail_prove_drop(&j, &err) == -EPERM && strstr(err.text, "a port") != NULL);
}

static void
connects_only_to_ports_that_are_listed(void **state UNUSED)
{
	if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) < 4)
		skip();
	assert_int_equal(in_child(ports_listed), 0);
}

/* ---- refusals ---- */

/* From here the call `nr` fails with ENOSYS, as on a kernel that lacks it. */
static void
lose_call(uint32_t nr)
{
	const struct sock_filter f[] = {
		{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr)},
		{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, nr},
		{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS},
		{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
	};
	struct err err;

	CHECK(jail_filter_load(f, ARRAY_LEN(f), &err) == 0);
}

static void
without_landlock(void)
{
	struct err err = {.text = ""};

	lose_call(SYS_landlock_create_ruleset);
	CHECK(jail_enter(&tight, &err) == -ENOSYS && strstr(err.text, "no Landlock") != NULL);
}

static void
without_seccomp(void)
{
	struct err err = {.text = ""};

	lose_call(SYS_seccomp);
	CHECK(jail_enter(&tight, &err) == -ENOSYS && strstr(err.text, "syscall filter") != NULL);
}

static void
without_root(void)
{
	struct err err = {.text = ""};

	CHECK(setresgid(ID, ID, ID) == 0 && setresuid(ID, ID, ID) == 0);
	CHECK(jail_enter(&tight, &err) < 0);
}

static void
with_too_high_limit(void)
{
	static const struct jail_rlimit low[] = {{RLIMIT_NOFILE, 32}},
					high[] = {{RLIMIT_NOFILE, 33}};
	struct err err = {.text = ""};

	CHECK(jail_rlimits_set(low, 1, &err) == 0);
	CHECK(jail_caps_drop_to(0, &err) == 0);
	CHECK(jail_rlimits_set(high, 1, &err) == -EPERM &&
		strstr(err.text, "resource limit") != NULL);
}

static void
with_nonsense(void)
{
	const struct jail bad[] = {
		{.uid = 0,
			.gid = ID,
			.filter = test_syscalls,
			.filter_n = ARRAY_LEN(test_syscalls)},
		{.uid = ID,
			.gid = 0,
			.filter = test_syscalls,
			.filter_n = ARRAY_LEN(test_syscalls)},
		{.uid = ID, .gid = ID, .keep = 1, .filter = test_syscalls, .filter_n = 1},
		{.uid = ID, .gid = ID, .mounts = true, .filter = test_syscalls, .filter_n = 1},
		{.uid = ID, .gid = ID},
		{.uid = (uid_t)-1, .gid = ID, .filter = test_syscalls, .filter_n = 1},
	};
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(jail_enter(&bad[i], &err) == -EINVAL);
	CHECK(getuid() == 0); /* refused before anything was given up */
}

static void
refuses_half_a_jail(void **state UNUSED)
{
	void (*const refusals[])(void) = {without_landlock, without_seccomp, without_root,
		with_too_high_limit, with_nonsense};

	for (size_t i = 0; i < ARRAY_LEN(refusals); i++)
		assert_int_equal(in_child(refusals[i]), 0);
}

static int
make_place(void)
{
	char path[64];

	if (mkdtemp(place) == NULL || chmod(place, 0755) != 0)
		return -1;
	for (const char *s = "rw"; *s != '\0'; s++) {
		(void)snprintf(path, sizeof(path), "%s/%c", place, *s);
		if (mkdir(path, 0755) != 0 || chown(path, ID, ID) != 0)
			return -1;
	}
	(void)snprintf(path, sizeof(path), "%s/r/file", place);
	return close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
}

static void
remove_place(void)
{
	static const char *const files[] = {"r/file", "w/new"}, *const dirs[] = {"r", "w", ""};
	char path[64];

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", place, files[i]);
		(void)unlink(path);
	}
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", place, dirs[i]);
		(void)rmdir(path);
	}
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_closed_from_inside),
		cmocka_unit_test(does_not_signal_its_uid),
		cmocka_unit_test(opens_only_what_is_listed),
		cmocka_unit_test(is_seen_from_outside),
		cmocka_unit_test(keeps_what_the_supervisor_keeps),
		cmocka_unit_test(proofs_find_what_is_missing),
		cmocka_unit_test(whole_jail_is_proven),
		cmocka_unit_test(connects_only_to_ports_that_are_listed),
		cmocka_unit_test(refuses_half_a_jail),
	};
	int failed;

	if (getuid() != 0)
		return SKIPPED;
	/* There must be something to drop. */
	if (setgroups(2, (const gid_t[]){1, 2}) != 0 || make_place() != 0)
		return 1;
	failed = cmocka_run_group_tests_name("jail", tests, NULL, NULL);
	remove_place();
	return failed;
}
