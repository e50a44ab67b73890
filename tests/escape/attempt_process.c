/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts of the classes `process` and `rights`: other processes, and more rights than given. See probe.h. */
#include "probe.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/ioprio.h>
#include <linux/kcmp.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/io.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- processes of the host ---- */

ATTEMPT(kill_host, kill(g->host_pid, 0))
ATTEMPT(tgkill_host, syscall(SYS_tgkill, g->host_pid, g->host_pid, 0))
ATTEMPT(queue_host, sigqueue(g->host_pid, 0, (union sigval){.sival_int = 0}))
ATTEMPT(pidfd_host, syscall(SYS_pidfd_open, g->host_pid, 0))

/* ---- PID 1 and children ---- */

ATTEMPT(pidfd_steal,
	syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, 1, 0), 3, 0) < 0 && errno != EBADF ? -1
											    : 0)
ATTEMPT(ptrace_init, ptrace(PTRACE_SEIZE, 1, NULL, NULL))
ATTEMPT(ptrace_me, ptrace(PTRACE_TRACEME, 0, NULL, NULL))

static pid_t
sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	return pid;
}

ATTEMPT(ptrace_child, ptrace(PTRACE_SEIZE, sleeper(), NULL, NULL))

static long
vm(long call)
{
	static char own[8];
	struct iovec here = {own, sizeof(own)}, there = {own, sizeof(own)};

	return syscall(call, 1, &here, 1, &there, 1, 0);
}

/* PID 1 has no such address: EFAULT would mean that the kernel looked. */
ATTEMPT(vm_read_init, vm(SYS_process_vm_readv) < 0 && errno != EFAULT ? -1 : 0)
ATTEMPT(vm_write_init, vm(SYS_process_vm_writev) < 0 && errno != EFAULT ? -1 : 0)
ATTEMPT(kcmp_init, syscall(SYS_kcmp, 1, getpid(), KCMP_FILES, 0, 0))
ATTEMPT(migrate_init, syscall(SYS_migrate_pages, 1, 0, NULL, NULL))

/* Whatever each call answers: PID 1 is still there, or so were not we. */
int
try_signals_init(const struct given *g, struct note *n)
{
	unsigned delivered = 0;

	(void)g;
	for (int s = 1; s <= 64; s++)
		if (s != 32 && s != 33 && kill(1, s) == 0)
			delivered++;
	(void)usleep(100000);
	NOTE(n, "%u accepted by the kernel", delivered);
	return kill(1, 0) == 0 || errno == EPERM ? OWN : WORKED;
}

ATTEMPT(priority, setpriority(PRIO_PROCESS, 0, -5))

int
try_realtime(const struct given *g, struct note *n)
{
	const struct sched_param p = {.sched_priority = 1};

	(void)g, (void)n;
	return sched_setscheduler(0, SCHED_FIFO, &p) < 0 ? errno : WORKED;
}

ATTEMPT(io_realtime,
	syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, 0)))

/* ---- what the kernel says about our rights ---- */

/* Lines of /proc/self/status whose names start with `prefix` and whose value (in this base) is not `value`. */
static int
status_check(const char *prefix, int base, unsigned long long value, unsigned lines, struct note *n)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	unsigned seen = 0;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		char name[32];
		unsigned long long v;

		if (strncmp(line, prefix, strlen(prefix)) != 0 ||
			sscanf(line, base == 16 ? "%31[A-Za-z_]: %llx" : "%31[A-Za-z_]: %llu", name,
				&v) != 2)
			continue;
		seen++;
		if (v != value) {
			NOTE(n, "%s is %llx", name, v);
			return WORKED;
		}
	}
	return seen == lines ? OWN : WORKED;
}

int
try_capabilities(const struct given *g, struct note *n)
{
	(void)g;
	return status_check("Cap", 16, 0, 5, n);
}

int
try_no_new_privs(const struct given *g, struct note *n)
{
	(void)g;
	return status_check("NoNewPrivs:", 10, 1, 1, n);
}

int
try_seccomp_mode(const struct given *g, struct note *n)
{
	(void)g;
	return status_check("Seccomp:", 10, SECCOMP_MODE_FILTER, 1, n);
}

ATTEMPT(no_new_privs_off, prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0))
ATTEMPT(seccomp_off, prctl(PR_SET_SECCOMP, SECCOMP_MODE_DISABLED, 0, 0, 0))

static long
filter_allow_all(unsigned flags)
{
	static struct sock_filter all[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
	const struct sock_fprog program = {1, all};

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

int
try_seccomp_over(const struct given *g, struct note *n)
{
	(void)g;
	if (filter_allow_all(0) < 0)
		NOTE(n, "the filter was refused: %s", strerrorname_np(errno));
	return mount("none", "/tmp", "tmpfs", 0, NULL) < 0 ? errno : WORKED;
}

ATTEMPT(seccomp_listener, filter_allow_all(SECCOMP_FILTER_FLAG_NEW_LISTENER))

int
try_capset_all(const struct given *g, struct note *n)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2];

	(void)g, (void)n;
	/* One is enough to be refused, and the control test has all but those that its host lacks. */
	memset(data, 0, sizeof(data));
	data[0].permitted = data[0].effective = 1U << CAP_CHOWN;
	return syscall(SYS_capset, &head, data) < 0 ? errno : WORKED;
}

ATTEMPT(ambient_raise, prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_RAW, 0, 0))
ATTEMPT(bounding_drop, prctl(PR_CAPBSET_DROP, CAP_NET_RAW, 0, 0, 0))
ATTEMPT(secure_bits, prctl(PR_SET_SECUREBITS, 0, 0, 0, 0))
ATTEMPT(other_user, setresuid(12345, 12345, 12345))
ATTEMPT(host_root, setresuid(70000, 70000, 70000))
ATTEMPT(other_group, setresgid(12345, 12345, 12345))

int
try_other_groups(const struct given *g, struct note *n)
{
	const gid_t group = 12345;

	(void)g, (void)n;
	return setgroups(1, &group) < 0 ? errno : WORKED;
}

ATTEMPT(personality_exec, personality(READ_IMPLIES_EXEC))
ATTEMPT(personality_fixed, personality(ADDR_NO_RANDOMIZE))
ATTEMPT(ports_ioperm, ioperm(0x80, 1, 1))
ATTEMPT(ports_iopl, syscall(SYS_iopl, 3))
