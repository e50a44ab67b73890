/* SPDX-License-Identifier: Apache-2.0 */
/* Starting the other programs; see program.h. Called by child.c, relay.c and start.c. */
#include "supervisor/program.h"

#include "lib/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static const struct {
	const char *file, *folder;
} rows[] = {
#define PROGRAM(NAME, file, folder) {file, folder},
#include "supervisor/programs.def"
#undef PROGRAM
};

static bool
executable(const char *path)
{
	return access(path, X_OK) == 0;
}

/* The path of one program, allocated; NULL when it is nowhere. */
static char *
find(const char *dir, bool neighbours, enum program i)
{
	char *path = NULL;

	if (asprintf(&path, "%s/%s", dir, rows[i].file) < 0)
		return NULL;
	if (executable(path))
		return path;
	free(path);
	if (!neighbours || asprintf(&path, "%s/%s/%s", dir, rows[i].folder, rows[i].file) < 0)
		return NULL;
	if (executable(path))
		return path;
	free(path);
	return NULL;
}

int
programs_find(struct programs *p, const char *libexec, struct err *err)
{
	char own[4096];
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
	char *slash;

	if (n < 0)
		return err_errno(err, "/proc/self/exe");
	own[n] = '\0';
	slash = strrchr(own, '/');
	must(slash != NULL);
	*slash = '\0';
	*p = (struct programs){0};
	for (enum program i = 0; i < PROGRAM_MAX; i++) {
		p->path[i] = find(libexec != NULL ? libexec : own, libexec == NULL, i);
		if (p->path[i] == NULL) {
			programs_done(p);
			return err_set(err, -ENOENT,
				"no program %s in %.150s; give its directory with --libexec",
				rows[i].file, libexec != NULL ? libexec : own);
		}
	}
	return 0;
}

void
programs_done(struct programs *p)
{
	for (enum program i = 0; i < PROGRAM_MAX; i++)
		free(take_ptr(p->path[i]));
}

/* ---- in the child ---- */

#define CAP(name)  (1ULL << CAP_##name)
#define START_CAPS (CAP(SETUID) | CAP(SETGID) | CAP(SETPCAP))

static int
caps_set(uint64_t mask)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {
		{(uint32_t)mask, (uint32_t)mask, (uint32_t)mask},
		{(uint32_t)(mask >> 32), (uint32_t)(mask >> 32), (uint32_t)(mask >> 32)},
	};

	return syscall(SYS_capset, &head, data) < 0 ? -1 : 0;
}

/*
 * From root to `uid` with exactly the capabilities that jail_enter() needs to take itself all away; ambient, so that
 * they pass the exec. The bounding set holds no other, so nothing else can come back.
 */
static int
ids_become(uint32_t uid)
{
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if ((START_CAPS >> cap & 1) == 0 && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return -1;
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setgroups(0, NULL) < 0 ||
		setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0 ||
		caps_set(START_CAPS) < 0)
		return -1;
	for (int cap = 0; cap < 64; cap++)
		if ((START_CAPS >> cap & 1) != 0 &&
			prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) < 0)
			return -1;
	return 0;
}

static NORETURN void
child_main(const struct program_start *s, pid_t parent)
{
	const char *const argv[] = {s->path, s->argument, NULL};
	static const char *const env[] = {NULL};
	int fds[16], null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct err err = {0};
	sigset_t none;

	/* Ctrl-C at the terminal is for the supervisor alone: it ends the others in order, with their records. */
	(void)setsid();
	for (int i = 1; i < NSIG; i++)
		(void)signal(i, SIG_DFL); /* SIGKILL and SIGSTOP refuse, and have no handler */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL); /* cannot fail with these arguments */
	must(s->nfds <= ARRAY_LEN(fds) - 3);
	fds[0] = null;
	fds[1] = fds[2] = STDERR_FILENO;
	for (size_t i = 0; i < s->nfds; i++)
		fds[3 + i] = s->fds[i];
	if (null < 0 || fd_arrange(fds, 3 + s->nfds, 0, &err) < 0)
		_exit(126);
	if (s->uid != 0 && ids_become(s->uid) < 0)
		_exit(126);
	/* After the ids, whose change would make the kernel forget it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(126);
	(void)execve(s->path, (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)env);
	_exit(127);
}

pid_t
program_start(const struct program_start *s, int *ret_pidfd, struct err *err)
{
	int pidfd = -1;
	struct clone_args args = {
		.exit_signal = SIGCHLD, .flags = CLONE_PIDFD, .pidfd = (__u64)(uintptr_t)&pidfd};
	sigset_t all, before;
	pid_t self = getpid(), pid;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before); /* cannot fail with these arguments */
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		child_main(s, self);
	(void)sigprocmask(SIG_SETMASK, &before, NULL); /* as above */
	if (pid < 0)
		return err_errno(err, "a process for %s", s->path);
	*ret_pidfd = pidfd;
	return pid;
}

void
program_end(int *pidfd)
{
	siginfo_t info;

	if (*pidfd < 0)
		return;
	(void)syscall(
		SYS_pidfd_send_signal, *pidfd, SIGKILL, NULL, 0); /* it may have ended already */
	while (waitid(P_PIDFD, (id_t)*pidfd, &info, WEXITED) < 0 && errno == EINTR)
		;
	(void)close(take_fd(pidfd)); /* waited for */
}
