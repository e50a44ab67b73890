/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox's filter against its list, for every syscall number: the list is read here
 * as C, with the kernel's own numbers, so neither the parser nor libseccomp can be wrong
 * unseen. The verdict is the real kernel's, and no call is carried out: an older second
 * filter answers EL2HLT to everything, which shows exactly where the newer one allows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/jail/jail.h"

#include "sandbox-syscalls.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum {
	ALLOWED = EL2HLT,
	NR_END = 1024,
	LEAVE = 42,
	/* uretprobe and uprobe: since Linux 6.14 the kernel asks no filter about them. Outside the
	   trampoline of a probe that host root has set they do nothing but SIGILL. */
	UNFILTERED = 335,
	UNFILTERED_LAST = 336,
};

struct finding {
	size_t asked, differ;
	long nr;
	unsigned long a[3];
	int want, got;
};

static struct finding *found; /* shared with the child */

/* What the list says: ALLOWED or an errno. */
static int
expected(long nr, const unsigned long a[3])
{
#define ARG(i) ((uint32_t)a[i])
#define DEFAULT(...)
#define FOREIGN(...)
#define COMPLETE(name)
#define ALLOW_IF(name, ...)                     \
	if (nr == __NR_##name && (__VA_ARGS__)) \
		return ALLOWED;
#define ERRNO_IF(e, name, ...)                  \
	if (nr == __NR_##name && (__VA_ARGS__)) \
		return e;
#define ALLOW(name)    ALLOW_IF(name, true)
#define ERRNO(e, name) ERRNO_IF(e, name, true)
#include "supervisor/sandbox-syscalls.def"
#undef ARG
	return ENOSYS;
}

/* EL2HLT to all but the two calls that the test itself makes. */
static int
load_probe(struct err *err)
{
	static const struct sock_filter probe[] = {
		{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr)},
		{BPF_JMP | BPF_JEQ | BPF_K, 0, 3, __NR_exit_group},
		{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, args)},
		{BPF_JMP | BPF_JEQ | BPF_K, 6, 0, LEAVE},
		{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ALLOWED},
		{BPF_JMP | BPF_JEQ | BPF_K, 0, 5, __NR_seccomp},
		{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, args)},
		{BPF_JMP | BPF_JEQ | BPF_K, 0, 3, SECCOMP_SET_MODE_FILTER},
		{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, args[1])},
		{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0},
		{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
		{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ALLOWED},
	};

	return jail_filter_load(probe, ARRAY_LEN(probe), err);
}

/* Runs fn behind both filters; the child's wait status. */
static int
behind_filters(void (*fn)(void))
{
	int status = 0;
	pid_t pid;

	memset(found, 0, sizeof(*found));
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct err err;

		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || load_probe(&err) != 0 ||
			jail_filter_load(sandbox_syscalls, ARRAY_LEN(sandbox_syscalls), &err) != 0)
			abort();
		fn();
		_exit(LEAVE);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void
ask(long nr, int want, unsigned long a0, unsigned long a1, unsigned long a2)
{
	long r;
	int got;

	errno = 0;
	r = syscall(nr, a0, a1, a2, 0, 0, 0);
	got = r == -1 ? errno : 0;
	found->asked++;
	if (got == want || found->differ++ != 0)
		return;
	found->nr = nr;
	found->a[0] = a0;
	found->a[1] = a1;
	found->a[2] = a2;
	found->want = want;
	found->got = got;
}

static void
ask_every_number(void)
{
	for (long nr = 0; nr < NR_END; nr++) {
		const unsigned long none[3] = {0};

		if (nr < UNFILTERED || nr > UNFILTERED_LAST)
			ask(nr, expected(nr, none), 0, 0, 0);
	}
}

static void
ask_conditions(void)
{
	static const long calls[] = {__NR_socket, __NR_socketpair, __NR_mknod, __NR_mknodat,
		__NR_ioctl, __NR_clone, __NR_personality, __NR_seccomp};
	unsigned long v[128];
	size_t n = 0;

	for (unsigned long i = 0; i <= 17; i++)
		v[n++] = i;
	for (int i = 5; i < 32; i++)
		v[n++] = 1ul << i;
	static const unsigned long more[] = {38, 40, 132, 262, 0xffffffff, 0x80001, 0x801, 0x80802,
		0x80003, S_IFREG | 0644, S_IFIFO | 0600, S_IFSOCK, S_IFCHR | 0666, S_IFBLK, S_IFDIR,
		S_IFLNK, TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS, TIOCGWINSZ,
		CLONE_NEWUSER | SIGCHLD, 0x40000 | 8, 0x7d0f00};
	for (size_t i = 0; i < ARRAY_LEN(more); i++)
		v[n++] = more[i];
	for (size_t c = 0; c < ARRAY_LEN(calls); c++)
		for (size_t i = 0; i < n * n * n; i++) {
			/* Garbage in the high half now and then: the kernel does not see it. */
			unsigned long high = i % 3 == 0 ? 1ul << 32 : 0;
			unsigned long a[3] = {
				v[i % n] | high, v[i / n % n] | high, v[i / n / n] | high};

			if (calls[c] == __NR_seccomp && (uint32_t)a[0] == 1 && (uint32_t)a[1] == 0)
				continue; /* the probe lets it through */
			ask(calls[c], expected(calls[c], a), a[0], a[1], a[2]);
		}
}

static void
ask_x32(void)
{
	for (long nr = 0; nr < NR_END; nr++)
		ask(nr | 0x40000000, ENOSYS, 0, 0, 0);
}

static void
ask_int80(void)
{
	for (long nr = 0; nr < 512; nr++) {
		long r;

		__asm__ volatile("int $0x80"
				 : "=a"(r)
				 : "a"(nr), "b"(0), "c"(0), "d"(0), "S"(0), "D"(0)
				 : "r8", "r9", "r10", "r11", "memory");
		found->asked++;
		if ((int)r != -ENOSYS && found->differ++ == 0) {
			found->nr = nr;
			found->got = -(int)r;
		}
	}
}

static void
no_difference(size_t asked_at_least)
{
	if (found->differ != 0)
		fail_msg("%zu of %zu differ; first: syscall %ld(0x%lx, 0x%lx, 0x%lx) gave %d, the "
			 "list says %d",
			found->differ, found->asked, found->nr, found->a[0], found->a[1],
			found->a[2], found->got, found->want);
	assert_true(found->asked >= asked_at_least);
}

static void
every_number_has_its_verdict(void **state UNUSED)
{
	const unsigned long none[3] = {0};
	size_t allowed = 0;

	assert_int_equal(WEXITSTATUS(behind_filters(ask_every_number)), LEAVE);
	no_difference(NR_END - 2);
	for (long nr = 0; nr < NR_END; nr++)
		allowed += expected(nr, none) == ALLOWED;
	/* The reference is no empty list, and what a later kernel brings is denied. */
	assert_in_range(allowed, 230, 290);
	for (long nr = __NR_set_mempolicy_home_node + 1; nr < NR_END; nr++)
		assert_int_equal(expected(nr, none), ENOSYS);
}

static void
conditions_hold_for_all_arguments(void **state UNUSED)
{
	assert_int_equal(WEXITSTATUS(behind_filters(ask_conditions)), LEAVE);
	no_difference(1000000);
}

static void
x32_does_not_exist(void **state UNUSED)
{
	assert_int_equal(WEXITSTATUS(behind_filters(ask_x32)), LEAVE);
	no_difference(NR_END);
}

/* A kernel without 32-bit emulation answers SIGSEGV. */
static void
int80_does_not_exist(void **state UNUSED)
{
	int status = behind_filters(ask_int80);

	if (WIFSIGNALED(status)) {
		assert_int_equal(WTERMSIG(status), SIGSEGV);
		return;
	}
	assert_int_equal(WEXITSTATUS(status), LEAVE);
	no_difference(512);
}

/* The verdicts that the sandbox stands on, by hand, so that a changed list is noticed. */
static void
walls_are_in_the_list(void **state UNUSED)
{
	static const struct {
		long nr;
		unsigned long a[3];
		int want;
	} rows[] = {
		{__NR_mount, {0}, EPERM},
		{__NR_umount2, {0}, EPERM},
		{__NR_fsopen, {0}, EPERM},
		{__NR_move_mount, {0}, EPERM},
		{__NR_pivot_root, {0}, EPERM},
		{__NR_chroot, {0}, EPERM},
		{__NR_unshare, {CLONE_NEWUSER}, EPERM},
		{__NR_setns, {0}, EPERM},
		{__NR_clone, {CLONE_NEWUSER | SIGCHLD}, EPERM},
		{__NR_clone, {CLONE_NEWNET | SIGCHLD}, EPERM},
		{__NR_clone, {SIGCHLD}, ALLOWED},
		{__NR_clone3, {0}, ENOSYS},
		{__NR_ptrace, {0}, EPERM},
		{__NR_process_vm_readv, {0}, EPERM},
		{__NR_process_vm_writev, {0}, EPERM},
		{__NR_pidfd_getfd, {0}, EPERM},
		{__NR_bpf, {0}, EPERM},
		{__NR_perf_event_open, {0}, EPERM},
		{__NR_io_uring_setup, {0}, ENOSYS},
		{__NR_io_uring_enter, {0}, ENOSYS},
		{__NR_userfaultfd, {0}, ENOSYS},
		{__NR_add_key, {0}, ENOSYS},
		{__NR_keyctl, {0}, ENOSYS},
		{__NR_request_key, {0}, ENOSYS},
		{__NR_open_by_handle_at, {0}, EPERM},
		{__NR_name_to_handle_at, {0}, EPERM},
		{__NR_init_module, {0}, EPERM},
		{__NR_kexec_load, {0}, EPERM},
		{__NR_reboot, {0}, EPERM},
		{__NR_clock_settime, {0}, EPERM},
		{__NR_socket, {AF_UNIX, SOCK_STREAM}, ALLOWED},
		{__NR_socket, {AF_INET, SOCK_STREAM}, ALLOWED},
		{__NR_socket, {AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC}, ALLOWED},
		{__NR_socket, {AF_INET, SOCK_RAW, IPPROTO_ICMP}, EPERM},
		{__NR_socket, {AF_INET6, SOCK_RAW | SOCK_NONBLOCK}, EPERM},
		{__NR_socket, {AF_INET, SOCK_STREAM, 262}, EPROTONOSUPPORT}, /* MPTCP */
		{__NR_socket, {AF_NETLINK, SOCK_RAW, NETLINK_ROUTE}, ALLOWED},
		{__NR_socket, {AF_NETLINK, SOCK_RAW, 9}, EAFNOSUPPORT}, /* audit */
		{__NR_socket, {AF_PACKET, SOCK_RAW}, EAFNOSUPPORT},
		{__NR_socket, {40, SOCK_STREAM}, EAFNOSUPPORT},    /* vsock */
		{__NR_socket, {38, SOCK_SEQPACKET}, EAFNOSUPPORT}, /* alg */
		{__NR_ioctl, {0, TIOCSTI}, EPERM},
		{__NR_ioctl, {0, TIOCSTI | 1ul << 32}, EPERM},
		{__NR_ioctl, {0, TIOCLINUX}, EPERM},
		{__NR_ioctl, {0, TIOCGWINSZ}, ALLOWED},
		{__NR_mknod, {0, S_IFCHR}, EPERM},
		{__NR_mknodat, {0, 0, S_IFBLK}, EPERM},
		{__NR_mknodat, {0, 0, S_IFIFO | 0644}, ALLOWED},
		{__NR_personality, {0x400000}, EPERM}, /* READ_IMPLIES_EXEC */
		{__NR_seccomp, {1, SECCOMP_FILTER_FLAG_NEW_LISTENER}, EPERM},
		{__NR_seccomp, {1, 1}, ALLOWED},
		{__NR_acct, {0}, EPERM},
		{__NR_syslog, {0}, EPERM},
		{__NR_quotactl, {0}, EPERM},
		{__NR_swapon, {0}, EPERM},
		{__NR_iopl, {0}, EPERM},
		{__NR_kcmp, {0}, EPERM},
		{__NR_vmsplice, {0}, ENOSYS},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (expected(rows[i].nr, rows[i].a) != rows[i].want)
			fail_msg("row %zu (syscall %ld): the list says %d, not %d", i, rows[i].nr,
				expected(rows[i].nr, rows[i].a), rows[i].want);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_number_has_its_verdict),
		cmocka_unit_test(conditions_hold_for_all_arguments),
		cmocka_unit_test(x32_does_not_exist),
		cmocka_unit_test(int80_does_not_exist),
		cmocka_unit_test(walls_are_in_the_list),
	};

	found = mmap(
		NULL, sizeof(*found), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (found == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests_name("jail-sandbox", tests, NULL, NULL);
}
