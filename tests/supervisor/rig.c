/* SPDX-License-Identifier: Apache-2.0 */
/* The rig; see rig.h. */
#include "rig.h"

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/sha256.h"
#include "lib/base/hex.h"

#include "fake/pass.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

static void
run(const char *const *argv)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY);

		(void)dup2(null, 1);
		(void)execvp(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void
make_dir(const char *base, const char *name)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/%s", base, name);
	assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
}

/* A small root: busybox, empty places and mount points. */
static void
image_make(struct rig *r)
{
	static const char *const dirs[] = {
		"dev", "proc", "bin", "tmp", "workspace", "home", "home/agent", "run", "root"};
	char tree[128], image[128], name[512], text[SHA256_TEXT], busybox[160];
	static uint8_t room[4 << 20];
	struct err err;
	size_t n;
	int fd;

	(void)snprintf(tree, sizeof(tree), "%s/tree", r->dir);
	(void)snprintf(image, sizeof(image), "%s/image", r->dir);
	(void)snprintf(busybox, sizeof(busybox), "%s/bin/busybox", tree);
	assert_int_equal(mkdir(tree, 0755), 0);
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		make_dir(tree, dirs[i]);
	run((const char *const[]){"cp", "/bin/busybox", busybox, NULL});
	(void)snprintf(name, sizeof(name), "%s/link", tree);
	assert_int_equal(symlink("tmp", name), 0); /* no place, whatever it leads to */
	run((const char *const[]){"mkfs.erofs", "--quiet", "-x-1", image, tree, NULL});
	fd = open(image, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fd_read_upto(fd, room, sizeof(room), &n, &err), 0);
	assert_true(n < sizeof(room));
	(void)close(fd);
	sha256_of(view_of(room, n), r->image);
	hex_encode(r->image, 32, text);
	make_dir(r->settings.state_dir, "templates");
	(void)snprintf(name, sizeof(name), "%s/templates/%s.erofs", r->settings.state_dir, text);
	assert_int_equal(rename(image, name), 0);
}

void
rig_init(struct rig *r)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct settings *s = &r->settings;
	FILE *roots;

	*r = (struct rig){.dir = "/tmp/demilune-test-XXXXXX",
		.listener = -1,
		.link = -1,
		.edge = -1,
		.api = -1,
		.broker = -1,
		.catalogue = -1,
		.policies = -1};
	assert_non_null(mkdtemp(r->dir));
	assert_int_equal(chmod(r->dir, 0755), 0);
	(void)snprintf(s->state_dir, sizeof(s->state_dir), "%s/state", r->dir);
	(void)snprintf(s->run_dir, sizeof(s->run_dir), "%s/run", r->dir);
	(void)snprintf(s->tcp_address, sizeof(s->tcp_address), "127.0.0.1");
	s->tcp_port = 7421;
	/* Several tests may run on a machine at a time. */
	s->engine_uid = 100000 + (uint32_t)getpid() * 5;
	s->api_uid = s->engine_uid + 1;
	s->broker_uid = s->engine_uid + 2;
	s->dialer_uid = s->engine_uid + 3;
	s->relay_uid = s->engine_uid + 4;
	(void)snprintf(s->operations_dir, sizeof(s->operations_dir), "%s/operations", r->dir);
	(void)snprintf(s->secrets_dir, sizeof(s->secrets_dir), "%s/secrets", r->dir);
	(void)snprintf(s->trust_dir, sizeof(s->trust_dir), "%s/trust", r->dir);
	(void)snprintf(s->policies_dir, sizeof(s->policies_dir), "%s/policies", r->dir);
	(void)snprintf(s->roots, sizeof(s->roots), "%s/roots.pem", r->dir);
	roots = fopen(s->roots, "we");
	assert_non_null(roots);
	assert_true(fputs("of-the-system", roots) >= 0);
	assert_int_equal(fclose(roots), 0);
	(void)snprintf(s->origin, sizeof(s->origin), "test.local/audit");
	(void)snprintf(s->resolvers[0], sizeof(s->resolvers[0]), "127.0.0.1:5300");
	s->sandbox_uid_base = 2000000000 + (uint32_t)getpid() % 100 * 20000000;
	s->sandbox_uid_slots = 300;
	s->gateway_uid_base = s->sandbox_uid_base + s->sandbox_uid_slots * 65536;
	s->max_sandboxes = 256;
	s->max_memory_bytes = 64ULL << 30;
	s->max_ttl_ms = 3600000;
	s->max_limits = (struct limits){1ULL << 30, 1ULL << 30, 100000, 1024, 8000, 4096};
	s->default_limits = rig_limits();
	make_dir(r->dir, "state");
	make_dir(r->dir, "state/engine");
	image_make(r);
	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%s/state/engine/test.sock", r->dir);
	r->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(r->listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(chmod(at.sun_path, 0777), 0);
	assert_int_equal(listen(r->listener, 8), 0);
	r->room = malloc(ipc_room_bytes(EDGE_ENGINE_SUPERVISOR, ROOM_SUPERVISOR));
	assert_non_null(r->room);
}

static void
close_kept(int *fd)
{
	if (*fd >= 0)
		(void)close(take_fd(fd));
}

static void
engine_forget(struct rig *r)
{
	close_kept(&r->link);
	close_kept(&r->edge);
	close_kept(&r->api);
	close_kept(&r->broker);
	close_kept(&r->catalogue);
	close_kept(&r->policies);
}

static pid_t
take_pid(struct rig *r)
{
	pid_t pid = r->pid;

	r->pid = 0;
	return pid;
}

/* Waits for it; one that does not end in time is killed, and fails the test. */
static int
end_wait(pid_t pid)
{
	enum { DEADLINE_MS = 30000 };
	uint64_t began = clock_mono_ms();
	int status;
	pid_t r;

	while ((r = waitpid(pid, &status, WNOHANG)) == 0 && clock_mono_ms() - began < DEADLINE_MS)
		pause_ms(2);
	if (r == 0) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, &status, 0);
		fail_msg("the supervisor did not end in %d ms", DEADLINE_MS);
	}
	assert_int_equal(r, pid);
	return status;
}

/* Calls for each hierarchy; the directory of the group aside in it. */
static void
asides(pid_t owner, void (*call)(const char *dir))
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[4096], at[1024], name[64], dir[1200];

	(void)snprintf(name, sizeof(name), "demilune-aside-%d", (int)owner);
	if (f == NULL)
		return;
	while (fgets(line, sizeof(line), f) != NULL)
		if (strstr(line, " - cgroup") != NULL &&
			sscanf(line, "%*s %*s %*s %*s %1000s", at) == 1) {
			(void)snprintf(dir, sizeof(dir), "%s/%s", at, name);
			call(dir);
		}
	(void)fclose(f);
}

static pid_t mover;

static void
aside_enter(const char *dir)
{
	char path[1300];
	FILE *f;

	(void)mkdir(dir, 0755);
	(void)snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	f = fopen(path, "we");
	if (f == NULL)
		return;
	(void)fprintf(f, "%d", (int)mover);
	(void)fclose(f); /* cpuset takes nobody without processors; no sandbox needs it */
}

static void
aside_remove(const char *dir)
{
	(void)rmdir(dir);
}

static const struct rig *looking_for;

/* Of the supervisors of this rig: what a test that failed left. Leaves first. */
static int
remove_group(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)at;
	for (size_t i = 0; type == FTW_DP && i < looking_for->ntags; i++)
		if (strstr(path, looking_for->tags[i]) != NULL)
			(void)rmdir(path);
	return 0;
}

static void
groups_remove(const struct rig *r)
{
	looking_for = r;
	for (int i = 0; i < 100 && host_look(r).groups != 0; i++) {
		(void)nftw("/sys/fs/cgroup", remove_group, 32, FTW_PHYS | FTW_DEPTH);
		pause_ms(10);
	}
	asides(getpid(), aside_remove);
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

void
rig_done(struct rig *r)
{
	if (r->pid != 0)
		rig_kill(r);
	engine_forget(r);
	groups_remove(r);
	close_kept(&r->listener);
	free(take_ptr(r->room));
	assert_int_equal(nftw(r->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void
config_write(struct rig *r, const char *text, char *path, size_t n)
{
	struct msg_config_settings m = {.settings = r->settings};
	struct buf body;
	struct err err;
	int fd;

	(void)snprintf(path, n, "%s/config", r->dir);
	buf_init(&body, 65536);
	if (text != NULL)
		buf_add_str(&body, text);
	else
		msg_config_settings_put(&body, &m);
	assert_int_equal(buf_check(&body), 0);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, body.p, body.n, &err), 0);
	(void)close(fd);
	buf_done(&body);
}

static void
supervisor_run(struct rig *r, const char *config_text)
{
	char config[128];

	config_write(r, config_text, config, sizeof(config));
	r->pid = fork();
	if (r->pid == 0) {
		const char *log = getenv("RIG_LOG");

		(void)prctl(
			PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nothing running */
		mover = getpid();
		if (r->aside)
			asides(getppid(), aside_enter);
		int fd = open(log == NULL ? "/dev/null" : log, O_WRONLY | O_APPEND | O_CREAT, 0644);

		(void)dup2(fd, 2);
		(void)execl(SUPERVISOR, SUPERVISOR, "--config", config, "--libexec",
			getenv("RIG_LIBEXEC") == NULL ? LIBEXEC : getenv("RIG_LIBEXEC"), NULL);
		_exit(127);
	}
}

int
rig_start_fails(struct rig *r, const char *config_text)
{
	int status;

	supervisor_run(r, config_text);
	status = end_wait(take_pid(r));
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

void
rig_start(struct rig *r)
{
	supervisor_run(r, NULL);
	rig_engine_accept(r);
}

void
rig_engine_accept(struct rig *r)
{
	struct pollfd p = {.fd = r->listener, .events = POLLIN};
	struct ucred who;
	socklen_t len = sizeof(who);
	int fds[PASS_MAX];
	size_t n = 0;

	engine_forget(r);
	assert_int_equal(poll(&p, 1, 10000), 1);
	r->link = accept4(r->listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(r->link >= 0);
	assert_int_equal(getsockopt(r->link, SOL_SOCKET, SO_PEERCRED, &who, &len), 0);
	assert_int_equal(who.uid, r->settings.engine_uid);
	assert_int_equal(who.gid, r->settings.engine_uid);
	r->engine_pid = who.pid;
	assert_int_equal(pass_receive(r->link, fds, &n), 'e');
	assert_int_equal(n, 5);
	r->edge = fds[0];
	r->api = fds[1];
	r->broker = fds[2];
	r->catalogue = fds[3];
	r->policies = fds[4];
}

void
rig_broker_says(int edge, char *ret, size_t n)
{
	struct pollfd p = {.fd = edge, .events = POLLIN};
	ssize_t got;

	assert_int_equal(poll(&p, 1, 10000), 1);
	got = recv(edge, ret, n - 1, 0);
	assert_true(got > 0);
	ret[got] = '\0';
}

static void
directory_text(struct rig *r, const char *name, const char *text)
{
	char path[300];
	FILE *f;

	make_dir(r->dir, name);
	(void)snprintf(path, sizeof(path), "%s/%s/text", r->dir, name);
	(void)unlink(path);
	if (text == NULL) {
		(void)snprintf(path, sizeof(path), "%s/%s", r->dir, name);
		assert_int_equal(rmdir(path), 0);
		return;
	}
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

void
rig_operations(struct rig *r, const char *text)
{
	directory_text(r, "operations", text);
}

void
rig_policies(struct rig *r, const char *text)
{
	directory_text(r, "policies", text);
}

bool
rig_next(struct rig *r, int timeout_ms, struct ipc_msg *ret)
{
	struct pollfd p = {.fd = r->edge, .events = POLLIN};
	struct err err = {0};

	if (poll(&p, 1, timeout_ms) != 1)
		return false;
	return ipc_read(r->edge, EDGE_ENGINE_SUPERVISOR, ROOM_SUPERVISOR, r->room,
		       ipc_room_bytes(EDGE_ENGINE_SUPERVISOR, ROOM_SUPERVISOR), ret, &err) == 0;
}

void
rig_expect(struct rig *r, enum msg_type type, struct ipc_msg *ret)
{
	assert_true(rig_next(r, 10000, ret));
	if (ret->type == MSG_SPAWN_FAILED && type != MSG_SPAWN_FAILED) {
		struct msg_spawn_failed m;
		struct err err;

		assert_int_equal(msg_spawn_failed_get(ret->body, &m, &err), 0);
		fail_msg("SPAWN_FAILED: %s", m.text);
	}
	assert_string_equal(msg_info[ret->type].name, msg_info[type].name);
}

void
rig_greeting(struct rig *r, struct greeting *ret)
{
	struct ipc_msg in;
	struct err err;
	char tag[16];

	*ret = (struct greeting){0};
	rig_expect(r, MSG_SETTINGS, &in);
	assert_int_equal(msg_settings_get(in.body, &ret->settings, &err), 0);
	hex_encode(ret->settings.boot, 6, tag);
	if (r->ntags == 0 || strcmp(r->tags[r->ntags - 1], tag) != 0)
		(void)snprintf(r->tags[r->ntags++], sizeof(tag), "%s", tag);
	for (;;) {
		assert_true(rig_next(r, 10000, &in));
		if (in.type == MSG_HELD) {
			struct held *h = &ret->held[ret->nheld++];

			assert_int_equal(msg_held_get(in.body, &h->m, &err), 0);
			h->edge = ipc_msg_take(&in, 0);
			h->gateway = -1;
		} else if (in.type == MSG_GATEWAY_EDGE) {
			struct msg_gateway_edge m;

			assert_true(ret->nheld > 0);
			assert_int_equal(msg_gateway_edge_get(in.body, &m, &err), 0);
			assert_true(id_eq(&m.sandbox, &ret->held[ret->nheld - 1].m.sandbox));
			ret->held[ret->nheld - 1].gateway = ipc_msg_take(&in, 0);
		} else if (in.type == MSG_LEFTOVER) {
			assert_int_equal(
				msg_leftover_get(in.body, &ret->left[ret->nleft++], &err), 0);
		} else {
			assert_string_equal(msg_info[in.type].name, "HELD_END");
			return;
		}
	}
}

int
rig_stop(struct rig *r)
{
	const struct msg_stopped m = {0};
	struct ipc_msg in;
	struct buf body;
	int status;

	assert_int_equal(kill(r->pid, SIGTERM), 0);
	buf_init(&body, 64);
	msg_stopped_put(&body, &m);
	while (rig_next(r, 10000, &in)) {
		if (in.type == MSG_STOPPING)
			rig_send(r, MSG_STOPPED, &body);
		ipc_msg_done(&in);
	}
	buf_done(&body);
	status = end_wait(take_pid(r));
	engine_forget(r);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

void
rig_kill(struct rig *r)
{
	assert_int_equal(kill(r->pid, SIGKILL), 0);
	assert_int_equal(waitpid(r->pid, NULL, 0), r->pid);
	r->pid = 0;
	engine_forget(r);
}

void
rig_send(struct rig *r, enum msg_type type, const struct buf *body)
{
	struct buf packed;
	struct err err = {0};

	buf_init(&packed, IPC_MAX);
	ipc_pack(&packed, type, ++r->tag, buf_view(body));
	assert_int_equal(buf_check(&packed), 0);
	if (ipc_write(r->edge, buf_view(&packed), NULL, 0, &err) < 0)
		fail_msg("send: %s", err.text);
	buf_done(&packed);
}

void
rig_send_raw(struct rig *r, const void *p, size_t n, const int *fds, size_t nfds)
{
	struct err err = {0};

	assert_int_equal(ipc_write(r->edge, view_of(p, n), fds, nfds, &err), 0);
}

void
rig_template(struct rig *r)
{
	struct msg_template_prepare m = {.places = {"/workspace", "/tmp", "/home", "/run"}};
	struct msg_template_ready ready;
	struct ipc_msg in;
	struct buf body;
	struct err err;

	memcpy(m.template, r->image, 32);
	buf_init(&body, 65536);
	msg_template_prepare_put(&body, &m);
	rig_send(r, MSG_TEMPLATE_PREPARE, &body);
	buf_done(&body);
	assert_true(rig_next(r, 10000, &in));
	if (in.type == MSG_TEMPLATE_FAILED) {
		struct msg_template_failed failed;

		assert_int_equal(msg_template_failed_get(in.body, &failed, &err), 0);
		fail_msg("TEMPLATE_FAILED: %s", failed.text);
	}
	assert_int_equal(in.type, MSG_TEMPLATE_READY);
	assert_int_equal(msg_template_ready_get(in.body, &ready, &err), 0);
	assert_memory_equal(ready.template, r->image, 32);
	assert_int_equal(in.tag, r->tag);
}

struct limits
rig_limits(void)
{
	return (struct limits){.memory_bytes = 64 << 20,
		.disk_bytes = 8 << 20,
		.disk_inodes = 1000,
		.pids = 32,
		.cpu_milli = 1000,
		.open_files = 256};
}

static const uint8_t no_policy[32];

static void
spawn_ask(struct rig *r, struct box *b, const struct limits *l, uint64_t ttl_ms,
	const uint8_t policy[32])
{
	struct msg_spawn m = {.limits = *l, .ttl_ms = ttl_ms};
	struct buf body;

	*b = (struct box){.engine_edge = -1, .gateway_edge = -1, .channel = -1};
	id_new(&b->id);
	id_new(&b->task);
	memcpy(b->policy, policy, sizeof(b->policy));
	m.sandbox = b->id;
	m.task = b->task;
	memcpy(m.template, r->image, 32);
	memcpy(m.policy, policy, sizeof(m.policy));
	buf_init(&body, 65536);
	msg_spawn_put(&body, &m);
	rig_send(r, MSG_SPAWN, &body);
	buf_done(&body);
}

void
rig_spawn_ask(struct rig *r, struct box *b, const struct limits *l, uint64_t ttl_ms)
{
	spawn_ask(r, b, l, ttl_ms, no_policy);
}

void
rig_spawn_policy_ask(struct rig *r, struct box *b, const char *line)
{
	const struct limits l = rig_limits();
	uint8_t digest[32];

	sha256_of(view_str(line), digest);
	spawn_ask(r, b, &l, 60000, digest);
}

void
rig_spawn_policy(struct rig *r, struct box *b, const char *line)
{
	rig_spawn_policy_ask(r, b, line);
	rig_spawned(r, b);
}

/* Follows SPAWNED at once. */
static void
gateway_edge(struct rig *r, struct box *b)
{
	struct msg_gateway_edge m;
	struct ipc_msg in;
	struct err err;

	if (memcmp(b->policy, no_policy, sizeof(no_policy)) == 0)
		return;
	rig_expect(r, MSG_GATEWAY_EDGE, &in);
	assert_int_equal(msg_gateway_edge_get(in.body, &m, &err), 0);
	assert_true(id_eq(&m.sandbox, &b->id));
	b->gateway_edge = ipc_msg_take(&in, 0);
}

void
rig_spawned(struct rig *r, struct box *b)
{
	struct pollfd p = {.events = POLLIN};
	struct msg_spawned m;
	struct ipc_msg in;
	struct err err;
	size_t n = 0;

	rig_expect(r, MSG_SPAWNED, &in);
	assert_int_equal(msg_spawned_get(in.body, &m, &err), 0);
	assert_true(id_eq(&m.sandbox, &b->id));
	b->facts = m.facts;
	b->timings = m.timings;
	b->engine_edge = ipc_msg_take(&in, 0);
	gateway_edge(r, b);
	if (getenv("RIG_LIBEXEC") != NULL)
		return;
	p.fd = b->engine_edge;
	assert_int_equal(poll(&p, 1, 10000), 1);
	assert_int_equal(pass_receive(b->engine_edge, &b->channel, &n), 'r');
	assert_int_equal(n, 1);
}

void
rig_spawn(struct rig *r, struct box *b)
{
	struct limits l = rig_limits();

	rig_spawn_ask(r, b, &l, 60000);
	rig_spawned(r, b);
}

void
rig_kill_box(struct rig *r, struct box *b, struct msg_gone *ret)
{
	const struct msg_kill m = {.sandbox = b->id, .reason = SANDBOX_REASON_KILLED};
	struct ipc_msg in;
	struct buf body;
	struct err err;

	buf_init(&body, 4096);
	msg_kill_put(&body, &m);
	rig_send(r, MSG_KILL, &body);
	buf_done(&body);
	rig_expect(r, MSG_GONE, &in);
	assert_int_equal(in.tag, r->tag);
	assert_int_equal(msg_gone_get(in.body, ret, &err), 0);
	assert_true(id_eq(&ret->sandbox, &b->id));
	box_close(b);
}

void
box_close(struct box *b)
{
	close_kept(&b->engine_edge);
	close_kept(&b->gateway_edge);
	close_kept(&b->channel);
}

struct said
box_say(struct box *b, const char *format, ...)
{
	char line[512], answer[64];
	struct pollfd p = {.fd = b->channel, .events = POLLIN};
	struct said s = {-9, -9};
	va_list args;
	ssize_t n;

	va_start(args, format);
	(void)vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	assert_int_equal(send(b->channel, line, strlen(line), MSG_NOSIGNAL), (ssize_t)strlen(line));
	if (poll(&p, 1, 20000) != 1)
		return s;
	n = recv(b->channel, answer, sizeof(answer) - 1, 0);
	if (n <= 0)
		return s;
	answer[n] = '\0';
	assert_int_equal(sscanf(answer, "%lld %d", &s.n, &s.code), 2);
	return s;
}

/* ---- the host ---- */

static pid_t
pid_of(const char *s)
{
	unsigned pid = 0;

	(void)sscanf(s, "%u", &pid);
	return (pid_t)pid;
}

static bool
is_number(const char *s)
{
	return *s != '\0' && strspn(s, "0123456789") == strlen(s);
}

static size_t
lines_count(const char *path, const char *about)
{
	FILE *f = fopen(path, "re");
	char line[4096];
	size_t n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL)
		n += strstr(line, about) != NULL;
	(void)fclose(f);
	return n;
}

static size_t groups;

static int
count_group(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)at;
	for (size_t i = 0; type == FTW_D && i < looking_for->ntags; i++)
		groups += strstr(path, looking_for->tags[i]) != NULL;
	return 0;
}

/* Distinct namespaces of all kinds over all processes. */
static void
namespaces_add(const char *pid, char (*seen)[64], size_t *n, size_t max)
{
	static const char *const names[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char path[300], text[64];
		ssize_t len;
		bool found = false;

		(void)snprintf(path, sizeof(path), "/proc/%s/ns/%s", pid, names[i]);
		len = readlink(path, text, sizeof(text) - 1);
		if (len <= 0)
			continue;
		text[len] = '\0';
		for (size_t k = 0; k < *n && !found; k++)
			found = strcmp(seen[k], text) == 0;
		if (!found && *n < max)
			(void)snprintf(seen[(*n)++], 64, "%s", text);
	}
}

/* Processes with one of the rig's uids, and its supervisor with its children that did not become anybody yet. */
static bool
is_ours(const struct rig *r, const char *pid)
{
	const struct settings *s = &r->settings;
	char path[300], line[512];
	unsigned parent = 0, uid = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%s/status", pid);
	f = fopen(path, "re");
	if (f == NULL)
		return false;
	while (fgets(line, sizeof(line), f) != NULL) {
		(void)sscanf(line, "PPid: %u", &parent);
		(void)sscanf(line, "Uid: %u", &uid);
	}
	(void)fclose(f);
	return (uid >= s->engine_uid && uid <= s->relay_uid) ||
	       (uid >= s->sandbox_uid_base &&
		       uid < s->sandbox_uid_base + s->sandbox_uid_slots * 65536) ||
	       (uid >= s->gateway_uid_base && uid < s->gateway_uid_base + s->sandbox_uid_slots) ||
	       (r->pid != 0 && (parent == (unsigned)r->pid || pid_of(pid) == r->pid));
}

struct host
host_look(const struct rig *r)
{
	static char seen[8192][64];
	struct host h = {.mounts = lines_count("/proc/self/mountinfo", r->dir)};
	DIR *proc = opendir("/proc");
	struct dirent *e;

	assert_non_null(proc);
	while ((e = readdir(proc)) != NULL)
		if (is_number(e->d_name) && is_ours(r, e->d_name)) {
			h.processes++;
			namespaces_add(e->d_name, seen, &h.namespaces, ARRAY_LEN(seen));
		}
	(void)closedir(proc);
	groups = 0;
	looking_for = r;
	(void)nftw("/sys/fs/cgroup", count_group, 32, FTW_PHYS);
	h.groups = groups;
	return h;
}

void
host_is_clean(const struct rig *r)
{
	static const struct host nothing;
	struct host now = {0};

	for (int i = 0; i < 100; i++) {
		now = host_look(r);
		if (memcmp(&now, &nothing, sizeof(now)) == 0)
			return;
		pause_ms(20);
	}
	assert_int_equal(now.processes, 0);
	assert_int_equal(now.mounts, 0);
	assert_int_equal(now.groups, 0);
	assert_int_equal(now.namespaces, 0);
}

void
proof_is_zero(const struct proof *p)
{
	assert_int_equal(p->processes, 0);
	assert_int_equal(p->cgroups, 0);
	assert_int_equal(p->mounts, 0);
	assert_int_equal(p->namespaces, 0);
	assert_int_equal(p->journal, 0);
}

size_t
process_fds(pid_t pid)
{
	char path[64];
	DIR *d;
	size_t n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	d = opendir(path);
	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	(void)closedir(d);
	return n - 2;
}

bool
process_lives(pid_t pid)
{
	char path[64], text[512] = "";
	const char *state;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (f == NULL)
		return false;
	(void)!fread(text, 1, sizeof(text) - 1, f);
	(void)fclose(f);
	/* One that only waits for its new parent to notice is dead. */
	state = strrchr(text, ')');
	return state != NULL && state[2] != 'Z' && state[2] != 'X';
}

void
pause_ms(unsigned ms)
{
	const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	(void)nanosleep(&t, NULL);
}
