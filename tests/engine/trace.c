/* SPDX-License-Identifier: Apache-2.0 */
/* The watcher; see trace.h. A child seizes the engine and stops at each system call. */
#include "trace.h"

#include "lib/base/attr.h"
#include "proto_gen.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { CALLS_MAX = 4096 };

struct trace_log {
	volatile unsigned ready, n, killed;
	volatile unsigned char calls[CALLS_MAX];
};

/* TRACE_CALLS: of no interest. */
static enum trace_call
kind_of(uint64_t nr, uint64_t fd)
{
	switch (nr) {
	case SYS_pwrite64:
		return TRACE_WRITE;
	case SYS_fdatasync:
	case SYS_fsync:
		return TRACE_SYNC;
	case SYS_sendmsg:
		return fd == FD_ENGINE_BROKER ? TRACE_BROKER : TRACE_CALLS;
	default:
		return TRACE_CALLS;
	}
}

/* Entered a system call: true when it must not happen. */
static bool
entered(struct trace_log *log, pid_t pid, unsigned kill_at)
{
	struct __ptrace_syscall_info info;
	enum trace_call kind;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof(info), &info) <= 0 ||
		info.op != PTRACE_SYSCALL_INFO_ENTRY)
		return false;
	kind = kind_of(info.entry.nr, info.entry.args[0]);
	if (kind == TRACE_CALLS || log->n == CALLS_MAX)
		return false;
	log->calls[log->n] = (unsigned char)kind;
	log->n++;
	if (kill_at == TRACE_SECOND)
		return kind == TRACE_WRITE && log->n > 1 && log->calls[log->n - 2] == TRACE_SYNC;
	return log->n == kill_at;
}

static void
watch(struct trace_log *log, pid_t pid, unsigned kill_at)
{
	int status;

	if (ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACESYSGOOD) < 0 ||
		ptrace(PTRACE_INTERRUPT, pid, 0, 0) < 0)
		_exit(1);
	while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status)) {
		int signal = WSTOPSIG(status);
		bool call = signal == (SIGTRAP | 0x80), group = status >> 16 != 0;

		if (call && entered(log, pid, kill_at)) {
			log->killed = 1;
			(void)kill(pid, SIGKILL);
		}
		log->ready = 1;
		if (ptrace(PTRACE_SYSCALL, pid, 0, call || group ? 0 : signal) < 0 &&
			errno != ESRCH)
			_exit(1);
	}
	_exit(0);
}

void
trace_begin(struct trace *t, pid_t pid, unsigned kill_at)
{
	t->log = mmap(
		NULL, sizeof(*t->log), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(t->log, MAP_FAILED);
	t->watcher = fork();
	assert_true(t->watcher >= 0);
	if (t->watcher == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		watch(t->log, pid, kill_at);
	}
	for (int i = 0; t->log->ready == 0; i++) {
		assert_true(i < 1000);
		(void)usleep(1000);
	}
}

void
trace_end(struct trace *t)
{
	int status;

	(void)kill(t->watcher, SIGKILL); /* whoever it watched is let go */
	assert_int_equal(waitpid(t->watcher, &status, 0), t->watcher);
}

unsigned
trace_count(const struct trace *t)
{
	return t->log->n;
}

enum trace_call
trace_at(const struct trace *t, unsigned i)
{
	return (enum trace_call)t->log->calls[i];
}

bool
trace_killed(const struct trace *t)
{
	return t->log->killed != 0;
}

void
trace_free(struct trace *t)
{
	(void)munmap(t->log, sizeof(*t->log));
}
