/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts of class `kernel`: large or dangerous machines of the kernel, and the settings of the machine. See probe.h. */
#include "probe.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/fanotify.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int
try_io_uring(const struct given *g, struct note *n)
{
	struct io_uring_params p = {0};

	(void)g, (void)n;
	return syscall(SYS_io_uring_setup, 4, &p) < 0 ? errno : WORKED;
}

ATTEMPT(aio, syscall(SYS_io_setup, 1, &(aio_context_t){0}))

int
try_bpf_map(const struct given *g, struct note *n)
{
	union bpf_attr a = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};

	(void)g, (void)n;
	return syscall(SYS_bpf, BPF_MAP_CREATE, &a, sizeof(a)) < 0 ? errno : WORKED;
}

int
try_perf(const struct given *g, struct note *n)
{
	struct perf_event_attr a = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(a), .exclude_kernel = 1};

	(void)g, (void)n;
	return syscall(SYS_perf_event_open, &a, 0, -1, -1, 0) < 0 ? errno : WORKED;
}

ATTEMPT(user_faults, syscall(SYS_userfaultfd, O_CLOEXEC))
ATTEMPT(memory_secret, syscall(SYS_memfd_secret, 0))
ATTEMPT(splice_memory, syscall(SYS_vmsplice, -1, NULL, 0, 0))
ATTEMPT(ldt, syscall(SYS_modify_ldt, 0, NULL, 0))

/* Nothing below can succeed by accident: each has arguments that the kernel refuses after its check of rights. */
ATTEMPT(kexec, syscall(SYS_kexec_load, 0, 1000, NULL, 0))
ATTEMPT(kexec_file, syscall(SYS_kexec_file_load, -1, -1, 0, NULL, 0))
ATTEMPT(module_init, syscall(SYS_init_module, "", 0, ""))
ATTEMPT(module_file, syscall(SYS_finit_module, -1, "", 0))
ATTEMPT(module_delete, syscall(SYS_delete_module, "none_of_that_name", O_NONBLOCK))
ATTEMPT(reboot_machine, syscall(SYS_reboot, 1, 2, 3, NULL))
ATTEMPT(kernel_log, klogctl(10, NULL, 0))
ATTEMPT(hang_up, vhangup())
ATTEMPT(accounting, acct("/tmp/none"))
ATTEMPT(memory_policy, syscall(SYS_set_mempolicy, 0, NULL, 0))
ATTEMPT(watch_all, fanotify_init(FAN_CLASS_NOTIF, O_RDONLY))
ATTEMPT(sync_host, syscall(SYS_sync))
ATTEMPT(host_name, sethostname("probe", 5))
ATTEMPT(domain_name, setdomainname("probe", 5))

/* The time that it is: harmless even if it worked. */
int
try_time_of_day(const struct given *g, struct note *n)
{
	struct timeval now;

	(void)g, (void)n;
	(void)gettimeofday(&now, NULL);
	return settimeofday(&now, NULL) < 0 ? errno : WORKED;
}

int
try_clock_change(const struct given *g, struct note *n)
{
	struct timespec now;

	(void)g, (void)n;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	return clock_settime(CLOCK_REALTIME, &now) < 0 ? errno : WORKED;
}

ATTEMPT(clock_adjust, adjtimex(&(struct timex){.modes = ADJ_FREQUENCY}))

/* ---- ways to a system call ---- */

ATTEMPT(call_unknown, syscall(2000))
/* getpid by its x32 number */
ATTEMPT(call_x32, syscall(0x40000000 + SYS_getpid))

/* getpid through int 0x80; a kernel without the gate ends the process, and none is better still. */
int
try_call_i386(const struct given *g, struct note *n)
{
	int status;
	pid_t pid = fork();

	(void)g;
	if (pid == 0) {
		long r = 20;

		__asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
		_exit(r > 0 ? 0 : (int)-r);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return WORKED;
	if (WIFSIGNALED(status)) {
		NOTE(n, "the kernel has no such gate: signal %d", WTERMSIG(status));
		return ENOSYS;
	}
	return WEXITSTATUS(status);
}

int
try_execute_memory(const struct given *g, struct note *n)
{
	static char name[] = "true", *const argv[] = {name, NULL};
	int from = open("/bin/true", O_RDONLY | O_CLOEXEC), to = memfd_create("probe", MFD_CLOEXEC),
	    status;
	static char block[65536];
	ssize_t size;
	pid_t pid;

	(void)g, (void)n;
	while ((size = read(from, block, sizeof(block))) > 0)
		if (write(to, block, (size_t)size) != size)
			return errno;
	pid = fork();
	if (pid == 0) {
		(void)fexecve(to, argv, argv + 1);
		_exit(errno);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return ECHILD;
	return WEXITSTATUS(status);
}
