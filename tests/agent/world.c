/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox without the supervisor; see world.h. */
#include "world.h"

#include "lib/base/clock.h"
#include "lib/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <setjmp.h>
#include <cmocka.h>

static void
need(bool good, const char *what)
{
	if (!good) {
		(void)fprintf(stderr, "world: %s: %s\n", what, strerror(errno));
		abort();
	}
}

static void
write_text(const char *path, const char *text)
{
	auto_fd int fd = open(path, O_WRONLY | O_CLOEXEC);

	need(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
}

/*
 * A cpu group beside the pids group, as every sandbox has one: what runs inside must compete with itself
 * only, and not with what else this machine does.
 */
static void
cpu_path(const struct world *w, const char *file, char *ret, size_t n)
{
	(void)snprintf(ret, n, "/sys/fs/cgroup/cpu%s%s", strrchr(w->cgroup, '/'), file);
}

static void
cgroup_make(struct world *w, unsigned pids)
{
	char path[128], text[16];

	(void)snprintf(w->cgroup, sizeof(w->cgroup), "/sys/fs/cgroup/pids/dmtest-%d", getpid());
	need(mkdir(w->cgroup, 0755) == 0 || errno == EEXIST, w->cgroup);
	(void)snprintf(path, sizeof(path), "%s/pids.max", w->cgroup);
	(void)snprintf(text, sizeof(text), "%u", pids);
	write_text(path, text);
	cpu_path(w, "", path, sizeof(path));
	need(mkdir(path, 0755) == 0 || errno == EEXIST, path);
	cpu_path(w, "/cpu.shares", path, sizeof(path));
	write_text(path, "65536");
}

enum { RELAY_UID = 64103 };

static void
caps_set(uint32_t keep, bool inheritable)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {
		{.effective = keep, .permitted = keep, .inheritable = inheritable ? keep : 0}};

	need(syscall(SYS_capset, &head, data) == 0, "capset");
}

static void
caps_limit(void)
{
	const uint32_t keep = 1u << CAP_SETUID | 1u << CAP_SETGID | 1u << CAP_SETPCAP |
			      1u << CAP_KILL;

	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (cap >= 32 || (keep & 1u << cap) == 0)
			need(prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0, "PR_CAPBSET_DROP");
	caps_set(keep, false);
	need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
}

/* The program with which others ask for actions; the build may stand below /tmp, which nobody sees any more. */
static void
propose_copy(int from)
{
	auto_fd int to = open("/tmp/demilune-propose", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	struct stat st;

	need(to >= 0 && fstat(from, &st) == 0 && fchmod(to, 0755) == 0 &&
			sendfile(to, from, NULL, (size_t)st.st_size) == st.st_size,
		"demilune-propose");
}

static void
roots_write(const char *text)
{
	auto_fd int fd = -1;

	need(mount("tmpfs", "/usr/share", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=4m") == 0,
		"share");
	need(mkdir("/usr/share/demilune", 0755) == 0, "share/demilune");
	fd = open("/usr/share/demilune/roots.crt", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	need(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "roots");
}

static void
mounts_make(const struct world_options *o)
{
	auto_fd int propose = open(PROPOSE_PATH, O_RDONLY | O_CLOEXEC);

	need(propose >= 0, PROPOSE_PATH);
	need(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "private");
	need(mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		     "hidepid=invisible") == 0,
		"proc");
	need(mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=64m") == 0,
		"tmp");
	propose_copy(propose);
	need(mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV,
		     o->places ? "mode=0755,size=1m,uid=10001,gid=10001" : "mode=0755,size=1m") ==
			0,
		"run");
	if (o->roots != NULL)
		roots_write(o->roots);
	need(mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		     "newinstance,ptmxmode=0666,mode=0620") == 0,
		"devpts");
	need(mount("/dev/pts/ptmx", "/dev/ptmx", NULL, MS_BIND, NULL) == 0, "ptmx");
	need(mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID, NULL) == 0,
		"read-only");
}

NORETURN static void
agent_child(const struct world *w, const struct world_options *o, int channel)
{
	char path[128];
	const char *exe = o->exe != NULL ? o->exe : AGENT_PATH;
	int program = open(exe, O_RDONLY | O_CLOEXEC), oom;
	char *argv[] = {(char *)(uintptr_t) "demilune-agent", NULL}, *env[] = {NULL};
	sigset_t all;

	need(program >= 0, exe);
	if (w->cgroup[0] != '\0') {
		(void)snprintf(path, sizeof(path), "%s/cgroup.procs", w->cgroup);
		write_text(path, "0");
		cpu_path(w, "/cgroup.procs", path, sizeof(path));
		write_text(path, "0");
	}
	mounts_make(o);
	/* The agent shall not rely on what it inherits. */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGINT, SIG_IGN);
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	caps_limit();
	program = fcntl(program, F_DUPFD, 100);
	oom = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	oom = fcntl(oom, F_DUPFD, 100);
	need(dup2(channel, 3) == 3 && dup2(oom, 4) == 4, "dup2");
	(void)close(oom);
	need(fcntl(program, F_SETFD, FD_CLOEXEC) == 0, "cloexec");
	(void)close_range(5, 99, 0);
	(void)close_range((unsigned)program + 1, ~0U, 0);
	(void)syscall(SYS_execveat, program, "", argv, env, AT_EMPTY_PATH);
	need(false, "exec of the agent");
	abort();
}

static pid_t
agent_start(const struct world *w, const struct world_options *o, int channel)
{
	long pid = syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, NULL, NULL, NULL, NULL);

	need(pid >= 0, "clone");
	if (pid == 0)
		agent_child(w, o, channel);
	return (pid_t)pid;
}

static pid_t
relay_start(int channel, int engine, int supervisor)
{
	const int fds[] = {channel, engine, supervisor};
	/* The leak check at the end of a sanitized process traces it, which a dropped process does not allow. */
	char *argv[] = {(char *)(uintptr_t) "demilune-relay", NULL};
	char *env[] = {SANITIZED ? (char *)(uintptr_t) "ASAN_OPTIONS=detect_leaks=0" : NULL, NULL};
	struct err err = {0};
	pid_t pid = fork();

	need(pid >= 0, "fork");
	if (pid > 0)
		return pid;
	/* As the supervisor starts it: its own uid, and what it takes to give all up. */
	need(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 &&
			setresgid(RELAY_UID, RELAY_UID, RELAY_UID) == 0 &&
			setresuid(RELAY_UID, RELAY_UID, RELAY_UID) == 0,
		"uid of the relay");
	caps_set(1u << CAP_SETUID | 1u << CAP_SETGID | 1u << CAP_SETPCAP, true);
	for (int cap = CAP_SETGID; cap <= CAP_SETPCAP; cap++)
		need(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) == 0, "ambient");
	need(fd_arrange(fds, ARRAY_LEN(fds), 3, &err) == 0, err.text);
	(void)execve(RELAY_PATH, argv, env);
	need(false, "exec of the relay");
	abort();
}

void
world_start(struct world *w, const struct world_options *o)
{
	int channel[2], engine[2], supervisor[2], null;
	struct err err = {0};

	*w = (struct world){.channel = -1};
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	need(null >= 0 && dup2(null, 0) == 0, "/dev/null");
	(void)close(null);
	if (o->pids > 0)
		cgroup_make(w, o->pids);
	need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) == 0, "socketpair");
	need(ipc_pair(engine, &err) == 0 && ipc_pair(supervisor, &err) == 0, "ipc_pair");
	if (o->no_relay)
		w->channel = channel[0];
	else
		w->relay = relay_start(channel[0], engine[1], supervisor[1]);
	if (o->no_agent)
		w->channel = channel[1];
	else
		w->agent = agent_start(w, o, channel[1]);
	if (!o->no_relay)
		(void)close(channel[0]);
	if (!o->no_agent)
		(void)close(channel[1]);
	(void)close(engine[1]);
	(void)close(supervisor[1]);
	w->engine = engine[0];
	w->supervisor = supervisor[0];
	if (!o->no_relay)
		SEND(w, AGENT_STARTS, agent_starts, -1, {0});
}

void
world_open(struct world *w)
{
	struct ipc_msg m;

	assert_true(engine_next(w, &m, 10000));
	assert_int_equal(m.type, MSG_RELAY_READY);
}

/* Its last processes may still be on their way out. */
static void
group_remove(const char *path)
{
	for (int i = 0; i < 200 && rmdir(path) < 0 && errno == EBUSY; i++)
		(void)usleep(10000);
}

void
world_stop(struct world *w)
{
	int status;

	if (w->supervisor >= 0)
		(void)close(w->supervisor);
	if (w->engine >= 0)
		(void)close(w->engine);
	if (w->channel >= 0)
		(void)close(w->channel);
	if (w->relay > 0) {
		(void)kill(w->relay, SIGCONT);
		need(waitpid(w->relay, &status, 0) == w->relay, "the relay's end");
	}
	if (w->agent > 0) {
		(void)kill(w->agent, SIGCONT);
		need(waitpid(w->agent, &status, 0) == w->agent, "the agent's end");
	}
	if (w->cgroup[0] != '\0') {
		char cpu[128];

		cpu_path(w, "", cpu, sizeof(cpu));
		group_remove(w->cgroup);
		group_remove(cpu);
	}
}

int
relay_wait(struct world *w, unsigned ms)
{
	uint64_t end = clock_mono_ms() + ms;
	int status;

	while (clock_mono_ms() < end) {
		if (waitpid(w->relay, &status, WNOHANG) == w->relay) {
			w->relay = 0;
			return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
		}
		(void)usleep(2000);
	}
	return -1;
}

static void
send_packed(int fd, enum msg_type type, struct view body, const int *fds, size_t nfds)
{
	struct err err = {0};
	struct buf b;
	int r;

	buf_init(&b, IPC_MAX + IPC_HEADER_BYTES);
	ipc_pack(&b, type, 0, body);
	while ((r = ipc_write(fd, buf_view(&b), fds, nfds, &err)) == -EAGAIN) {
		struct pollfd p = {.fd = fd, .events = POLLOUT};

		if (poll(&p, 1, 5000) == 0)
			break;
	}
	buf_done(&b);
	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		fail_msg("send %s: %s", msg_info[type].name, err.text);
}

void
world_send(struct world *w, enum msg_type type, struct view body, int fd)
{
	send_packed(msg_info[type].from == ROOM_SUPERVISOR ? w->supervisor : w->engine, type, body,
		&fd, fd >= 0 ? 1 : 0);
}

void
session_send(struct result *r, enum msg_type type, struct view body)
{
	send_packed(r->session, type, body, NULL, 0);
}

void
result_init(struct result *r)
{
	memset(r, 0, sizeof(*r));
	buf_init(&r->out, 512 << 20);
	buf_init(&r->err, 512 << 20);
	r->session = -1;
}

void
result_done(struct result *r)
{
	buf_done(&r->out);
	buf_done(&r->err);
	if (r->session >= 0)
		(void)close(r->session);
	r->session = -1;
}

static struct id
job_id(struct world *w)
{
	struct id id = {{0}};

	w->next_job++;
	id.b[0] = 1;
	memcpy(id.b + 1, &w->next_job, sizeof(w->next_job));
	return id;
}

static const char env_usual[] = "PATH=/usr/local/bin:/usr/bin:/bin\0HOME=/tmp\0LANG=C.UTF-8";

struct msg_job_start
start_argv(struct world *w, struct buf *room, const char *const *args)
{
	struct msg_job_start m = {.job = job_id(w),
		.kind = JOB_KIND_EXEC,
		.live = true,
		.uid = 10001,
		.timeout_ms = 20000,
		.path = view_str("/tmp"),
		.env = view_of(env_usual, sizeof(env_usual))};

	buf_clear(room);
	for (; *args != NULL; args++)
		buf_add(room, *args, strlen(*args) + 1);
	m.argv = buf_view(room);
	return m;
}

struct msg_job_start
start_shell(struct world *w, struct buf *room, const char *command)
{
	const char *args[] = {command, NULL};
	struct msg_job_start m = start_argv(w, room, args);

	m.shell = true;
	return m;
}

struct msg_job_start
start_file(struct world *w, enum job_kind kind, const char *path)
{
	return (struct msg_job_start){.job = job_id(w),
		.kind = kind,
		.live = true,
		.uid = 10001,
		.timeout_ms = 20000,
		.path = view_str(path),
		.size_bytes = kind == JOB_KIND_FILE_READ ? 0 : UINT64_MAX};
}

void
world_attach(struct world *w, struct result *r, uint64_t stdout_from, uint64_t stderr_from)
{
	struct err err = {0};
	int pair[2];

	need(ipc_pair(pair, &err) == 0, "ipc_pair");
	r->session = pair[0];
	r->out_at = stdout_from;
	r->err_at = stderr_from;
	r->out_end = r->closed = false;
	SEND(w, JOB_SESSION, job_session, pair[1],
		{.job = r->job, .stdout_from = stdout_from, .stderr_from = stderr_from});
	(void)close(pair[1]);
}

void
world_begin(struct world *w, const struct msg_job_start *m, bool attach, struct result *r)
{
	result_init(r);
	r->job = m->job;
	SEND(w, JOB_START, job_start, -1, *m);
	if (attach)
		world_attach(w, r, 0, 0);
}

static void
take_out(struct result *r, struct view body)
{
	struct err err = {0};
	struct msg_out m;
	uint64_t *at;

	assert_int_equal(msg_out_get(body, &m, &err), 0);
	at = m.output == OUTPUT_STDOUT ? &r->out_at : &r->err_at;
	assert_int_equal(m.offset, *at);
	*at += m.data.n;
	buf_add_view(m.output == OUTPUT_STDOUT ? &r->out : &r->err, m.data);
}

static void
take_gap(struct result *r, struct view body)
{
	struct err err = {0};
	struct msg_out_gap m;
	uint64_t *at;

	assert_int_equal(msg_out_gap_get(body, &m, &err), 0);
	at = m.output == OUTPUT_STDOUT ? &r->out_at : &r->err_at;
	assert_int_equal(m.from, *at);
	assert_true(m.to > m.from);
	*at = m.to;
	if (r->ngaps < GAPS_MAX)
		r->gaps[r->ngaps] = (struct gap){.output = m.output, .from = m.from, .to = m.to};
	r->ngaps++;
}

static void
take_entry(struct result *r, struct view body)
{
	struct err err = {0};
	struct msg_out_entry m;

	assert_int_equal(msg_out_entry_get(body, &m, &err), 0);
	if (r->nentries < ENTRIES_MAX) {
		struct entry *e = &r->entries[r->nentries];

		*e = (struct entry){.kind = m.kind,
			.mode = m.mode,
			.size_bytes = m.size_bytes,
			.mtime = m.mtime};
		memcpy(e->name, m.name.p, m.name.n);
	}
	r->nentries++;
}

static void
take_session(struct result *r)
{
	static uint8_t room[65536];
	struct err err = {0};
	struct ipc_msg m;
	int code;

	while (r->session >= 0) {
		code = ipc_read(
			r->session, EDGE_API_RELAY, ROOM_RELAY, room, sizeof(room), &m, &err);
		if (code == -EAGAIN)
			return;
		if (code < 0) {
			if (code != -EPIPE)
				fail_msg("session: %s", err.text);
			(void)close(r->session);
			r->session = -1;
			r->closed = true;
			return;
		}
		assert_false(r->out_end);
		if (m.type == MSG_OUT)
			take_out(r, m.body);
		else if (m.type == MSG_OUT_GAP)
			take_gap(r, m.body);
		else if (m.type == MSG_OUT_ENTRY)
			take_entry(r, m.body);
		else if (m.type == MSG_OUT_END)
			r->out_end = true;
	}
}

static bool
engine_read(struct world *w, struct ipc_msg *m)
{
	static uint8_t room[65536];
	struct err err = {0};
	int code;

	if (w->engine < 0)
		return false;
	code = ipc_read(w->engine, EDGE_RELAY_ENGINE, ROOM_RELAY, room, sizeof(room), m, &err);
	if (code == -EPIPE) {
		(void)close(w->engine);
		w->engine = -1;
	} else if (code < 0 && code != -EAGAIN) {
		fail_msg("engine: %s", err.text);
	}
	if (code == 0 && m->type == MSG_RELAY_LOST) {
		w->lost_count++;
		assert_int_equal(msg_relay_lost_get(m->body, &w->lost, &err), 0);
	}
	return code == 0;
}

bool
engine_next(struct world *w, struct ipc_msg *m, unsigned ms)
{
	uint64_t end = clock_mono_ms() + ms;

	for (;;) {
		struct pollfd p = {.fd = w->engine, .events = POLLIN};
		uint64_t now = clock_mono_ms();

		if (engine_read(w, m))
			return true;
		if (w->engine < 0 || now >= end)
			return false;
		(void)poll(&p, 1, (int)(end - now));
	}
}

bool
is_ended(const struct result *r)
{
	return r->ended;
}

bool
is_complete(const struct result *r)
{
	return r->ended && r->session < 0;
}

bool
world_until(struct world *w, struct result *r, bool (*done)(const struct result *), unsigned ms)
{
	uint64_t end = clock_mono_ms() + ms;

	for (;;) {
		struct pollfd p[] = {
			{.fd = w->engine, .events = POLLIN}, {.fd = r->session, .events = POLLIN}};
		uint64_t now = clock_mono_ms();
		struct ipc_msg m;

		take_session(r);
		while (engine_read(w, &m)) {
			struct err err = {0};
			struct msg_job_ended ended;

			if (m.type != MSG_JOB_ENDED)
				continue;
			assert_int_equal(msg_job_ended_get(m.body, &ended, &err), 0);
			if (!id_eq(&ended.job, &r->job))
				continue;
			assert_false(r->ended);
			r->ended = true;
			r->end = ended;
		}
		if (done(r))
			return true;
		if (now >= end || (w->engine < 0 && r->session < 0))
			return false;
		(void)poll(p, 2, (int)(end - now));
	}
}

static void
send_input(struct world *w, struct result *r, struct view in)
{
	for (; in.n > 0 && r->session >= 0; in = view_skip(in, 32768)) {
		SESSION_SEND(r, IN, in, {.data = view_of(in.p, in.n < 32768 ? in.n : 32768)});
		(void)w;
		take_session(r);
	}
	if (r->session >= 0)
		SESSION_SEND(r, IN_END, in_end, {0});
}

void
world_run(struct world *w, const struct msg_job_start *m, const struct view *in, struct result *r)
{
	world_begin(w, m, true, r);
	if (in != NULL)
		send_input(w, r, *in);
	if (!world_until(w, r, is_complete, 20000))
		fail_msg("the job did not end (ended %d, session %d, lost: %s)", r->ended,
			r->session, w->lost.text);
	SEND(w, JOB_RECORDED, job_recorded, -1, {.job = m->job});
}

void
world_shell(struct world *w, const char *command, struct result *r)
{
	auto_buf struct buf room = {.max = 1 << 17};
	struct msg_job_start m = start_shell(w, &room, command);

	world_run(w, &m, NULL, r);
}
