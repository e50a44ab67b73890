/* SPDX-License-Identifier: Apache-2.0 */
/* The other side of the engine; see play.h. */
#include "play.h"

#include "tests/actions/sample.h"

#include "lib/audit/audit.h"
#include "lib/base/fd.h"
#include "lib/base/hex.h"
#include "lib/tlog/sign.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { WAIT_MS = 15000, ENGINE_UID = 64101, API_UID = 64102 };

const struct caller as_root = {.kind = CALLER_KIND_LOCAL, .local = 0};

static struct buf audit_text; /* the records that play_audit read last, a line each */

/* ---- the state directory ---- */

static void
write_file(int dir, const char *name, const char *text)
{
	struct err err;
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0444);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text), &err), 0);
	(void)close(fd);
}

static void
make_template(struct play *p)
{
	char digest[SHA256_TEXT], text[1024], name[96];
	int templates, index;

	memset(p->template, 0x5a, sizeof(p->template));
	hex_encode(p->template, 32, digest);
	assert_int_equal(mkdirat(p->state, "templates", 0755), 0);
	templates = openat(p->state, "templates", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(templates, "index", 0755), 0);
	index = openat(templates, "index", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(text, sizeof(text),
		"{\"created\":\"2026-11-29T00:00:00.000Z\",\"digest\":\"%s\",\"format\":1,\"image_"
		"bytes\":4096,"
		"\"manifest\":{\"aliases\":[\"code-interpreter\"],\"description\":\"For "
		"tests\",\"env\":{\"HOME\":"
		"\"/workspace\",\"LANG\":\"C.UTF-8\"},\"name\":\"python\",\"places\":[\"/tmp\",\"/"
		"workspace\"]},"
		"\"versions\":[]}",
		digest);
	(void)snprintf(name, sizeof(name), "%s.json", digest);
	write_file(templates, name, text);
	(void)snprintf(text, sizeof(text), "%s\n", digest);
	write_file(index, "python", text);
	assert_int_equal(symlinkat("python", index, "code-interpreter"), 0);
	(void)close(templates);
	(void)close(index);
}

static void
make_settings(struct play *p)
{
	const struct limits l = {.memory_bytes = 512 << 20,
		.disk_bytes = 256 << 20,
		.disk_inodes = 65536,
		.pids = 256,
		.cpu_milli = 1000,
		.open_files = 1024};

	p->settings = (struct settings){.api_uid = API_UID,
		.sandbox_uid_base = 0x80000000,
		.sandbox_uid_slots = 1024,
		.max_sandboxes = 64,
		.max_memory_bytes = UINT64_C(64) << 30,
		.max_ttl_ms = 86400000,
		.default_limits = l,
		.default_ttl_ms = 900000,
		.default_idle_ms = 600000,
		.tenant_max_sandboxes = 32,
		.tenant_max_memory_bytes = UINT64_C(32) << 30,
		.tenant_creates_per_minute = 600,
		.tenant_max_tasks = 100,
		.task_max_input_bytes = 1 << 20,
		.admin_uid = 1000,
		.actions = {.pending_max = 20,
			.grant_max_ttl_ms = 86400000,
			.task = {200, 100, 1000, 64 << 20},
			.tenant_day = {20000, 10000, 100000, UINT64_C(4) << 30}}};
	p->settings.max_limits = l;
	p->settings.max_limits.memory_bytes = UINT64_C(8) << 30;
}

/* As the supervisor makes it. */
static void
make_local(struct play *p)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	(void)snprintf(p->settings.run_dir, sizeof(p->settings.run_dir), "%s", p->dir);
	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%s/api.sock", p->dir);
	p->local = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(p->local >= 0);
	assert_int_equal(bind(p->local, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(chmod(at.sun_path, 0666), 0);
	assert_int_equal(listen(p->local, 64), 0);
}

int
play_connect(struct play *p, uint32_t uid, int *ret_client)
{
	struct sockaddr_un at;
	socklen_t n = sizeof(at);
	int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;

	assert_true(client >= 0);
	assert_int_equal(getsockname(p->local, (struct sockaddr *)&at, &n), 0);
	assert_int_equal(seteuid(uid), 0);
	assert_int_equal(connect(client, (struct sockaddr *)&at, n), 0);
	assert_int_equal(seteuid(0), 0);
	(void)setfsuid(API_UID);
	fd = accept4(p->local, NULL, NULL, SOCK_CLOEXEC);
	(void)setfsuid(0);
	assert_true(fd >= 0);
	*ret_client = client;
	return fd;
}

struct caller
play_local(struct play *p, uint16_t number, uint32_t uid)
{
	int client, fd = play_connect(p, uid, &client);

	assert_true(number < PLAY_CLIENTS);
	SAY_FD(p->api, LOCAL_OPEN, local_open, fd, {.local = number});
	(void)close(fd);
	if (p->clients[number] > 0)
		(void)close(p->clients[number]);
	p->clients[number] = client;
	return (struct caller){.kind = CALLER_KIND_LOCAL, .local = number};
}

void
play_api_new(struct play *p)
{
	int pair[2];
	struct err err;

	assert_int_equal(ipc_pair(pair, &err), 0);
	SAY_FD(p->supervisor, API_EDGE, api_edge, pair[1], {0});
	(void)close(pair[1]);
	(void)close(p->api);
	p->api = pair[0];
	(void)play_local(p, 0, 0);
}

void
play_open(struct play *p)
{
	const char *below = getenv("TMPDIR");
	int engine;

	*p = (struct play){.supervisor = -1, .api = -1, .broker = -1, .uid_next = 0x80000000};
	assert_in_range(snprintf(p->dir, sizeof(p->dir), "%s/demilune-play-XXXXXX",
				below != NULL ? below : "/tmp"),
		1, sizeof(p->dir) - 1);
	assert_non_null(mkdtemp(p->dir));
	assert_int_equal(chmod(p->dir, 0755), 0);
	p->state = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(p->state >= 0);
	assert_int_equal(mkdirat(p->state, "engine", 0700), 0);
	engine = openat(p->state, "engine", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(fchown(engine, ENGINE_UID, ENGINE_UID), 0);
	(void)close(engine);
	make_template(p);
	make_settings(p);
	make_local(p);
	memset(p->boot, 0xb0, sizeof(p->boot));
	buf_init(&p->documents, CATALOGUE_BYTES_MAX);
	buf_init(&p->policies, 1 << 20);
	play_catalogue(p, "", "");
	p->room = malloc(IPC_MAX);
	assert_non_null(p->room);
	buf_init(&audit_text, 64 << 20);
}

static void
remove_tree(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (dir == NULL) {
		(void)unlinkat(at, name, 0);
		return;
	}
	for (struct dirent *d = readdir(dir); d != NULL; d = readdir(dir))
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			remove_tree(dirfd(dir), d->d_name);
	(void)closedir(dir);
	(void)unlinkat(at, name, AT_REMOVEDIR);
}

void
play_close(struct play *p)
{
	if (p->engine != 0)
		play_kill(p);
	ipc_msg_done(&p->in);
	(void)close(p->state);
	(void)close(p->local);
	for (size_t i = 0; i < PLAY_CLIENTS; i++)
		if (p->clients[i] > 0)
			(void)close(p->clients[i]);
	remove_tree(AT_FDCWD, p->dir);
	free(p->room);
	catalogue_done(&p->catalogue);
	buf_done(&p->documents);
	buf_done(&p->policies);
	buf_done(&audit_text);
}

/* ---- the program ---- */

/* As the supervisor starts it: own uid, three capabilities to drop the rest with. */
static void
become_engine(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	uint32_t caps = 1U << CAP_SETUID | 1U << CAP_SETGID | 1U << CAP_SETPCAP;
	struct __user_cap_data_struct data[2] = {
		{.effective = caps, .permitted = caps, .inheritable = caps}};

	must(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0);
	must(setresgid(ENGINE_UID, ENGINE_UID, ENGINE_UID) == 0 &&
		setresuid(ENGINE_UID, ENGINE_UID, ENGINE_UID) == 0);
	must(syscall(SYS_capset, &head, data) == 0);
	for (unsigned cap = 0; cap < 32; cap++)
		if ((caps >> cap & 1) != 0)
			must(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) == 0);
}

static void
child(const int fds[6])
{
	const char *path = getenv("DEMILUNE_ENGINE");
	struct err err;

	must(path != NULL && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0);
	must(fd_arrange(fds, 6, 3, &err) == 0);
	become_engine();
	must(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0);
	execle(path, path, (char *)NULL, (char *const[]){NULL});
	_exit(127);
}

/* As the supervisor hands it on: sealed. */
static int
catalogue_fd(struct play *p)
{
	return sample_fd(
		buf_view(&p->documents), F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

static int
policies_fd(struct play *p)
{
	return sample_fd(
		buf_view(&p->policies), F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

void
play_policy(struct play *p, const char *document)
{
	size_t n = document != NULL ? strlen(document) : 0;
	const uint8_t length[4] = {0, 0, (uint8_t)(n >> 8), (uint8_t)n};

	if (document == NULL) {
		buf_clear(&p->policies);
		return;
	}
	buf_add(&p->policies, length, sizeof(length));
	buf_add_str(&p->policies, document);
}

static void
replaced(struct view in, const char *from, const char *to, struct buf *out)
{
	size_t n = strlen(from);

	while (in.n > 0) {
		if (n > 0 && view_starts(in, from)) {
			buf_add_str(out, to);
			in = view_skip(in, n);
		} else {
			buf_add_byte(out, in.p[0]);
			in = view_skip(in, 1);
		}
	}
}

void
play_catalogue(struct play *p, const char *from, const char *to)
{
	static const char *const names[SAMPLE_OPERATIONS] = {
		"note", "order_status", "refund", "reply"};
	struct err err = {0};
	int fd auto_fd = -1;

	buf_clear(&p->documents);
	for (size_t i = 0; i < SAMPLE_OPERATIONS; i++) {
		auto_buf struct buf one, other;

		buf_init(&one, OPERATION_BYTES_MAX);
		buf_init(&other, OPERATION_BYTES_MAX);
		sample_document(names[i], 4080, &one);
		replaced(buf_view(&one), from, to, &other);
		assert_int_equal(buf_check(&other), 0);
		catalogue_put(&p->documents, buf_view(&other));
	}
	assert_int_equal(buf_check(&p->documents), 0);
	catalogue_done(&p->catalogue);
	fd = catalogue_fd(p);
	if (catalogue_read(fd, &p->catalogue, &err) < 0)
		fail_msg("%s", err.text);
}

void
play_launch(struct play *p)
{
	int supervisor[2], api[2], broker[2], catalogue = catalogue_fd(p),
					      policies = policies_fd(p);
	struct err err;
	struct msg_settings m = {.settings = p->settings};

	assert_int_equal(p->engine, 0);
	assert_int_equal(ipc_pair(supervisor, &err), 0);
	assert_int_equal(ipc_pair(api, &err), 0);
	assert_int_equal(ipc_pair(broker, &err), 0);
	p->engine = fork();
	assert_true(p->engine >= 0);
	if (p->engine == 0)
		child((const int[]){
			supervisor[1], api[1], p->state, broker[1], catalogue, policies});
	(void)close(supervisor[1]);
	(void)close(api[1]);
	(void)close(broker[1]);
	(void)close(catalogue);
	(void)close(policies);
	p->supervisor = supervisor[0];
	p->api = api[0];
	p->broker = broker[0];
	memcpy(m.boot, p->boot, 32);
	SAY(p->supervisor, SETTINGS, settings, m);
	(void)play_local(p, 0, 0);
}

void
play_ready(struct play *p)
{
	SAY(p->supervisor, HELD_END, held_end, {0});
	WANT(p, p->supervisor, TEMPLATE_PREPARE, template_prepare, m);
	assert_memory_equal(m.template, p->template, 32);
	assert_string_equal(m.places[1], "/workspace");
	struct msg_template_ready ready = {.size_bytes = 4096};
	memcpy(ready.template, p->template, 32);
	SAY(p->supervisor, TEMPLATE_READY, template_ready, ready);
}

void
play_start(struct play *p)
{
	play_launch(p);
	play_ready(p);
}

int
play_wait(struct play *p)
{
	int status = 0;

	for (int i = 0; i < WAIT_MS / 10; i++) {
		pid_t got = waitpid(p->engine, &status, WNOHANG);

		if (got == p->engine) {
			p->engine = 0;
			(void)close(take_fd(&p->supervisor));
			(void)close(take_fd(&p->api));
			if (p->broker >= 0)
				(void)close(take_fd(&p->broker));
			return status;
		}
		(void)poll(NULL, 0, 10);
	}
	fail_msg("the engine does not end");
	return -1;
}

void
play_kill(struct play *p)
{
	(void)kill(p->engine, SIGKILL);
	assert_int_equal(waitpid(p->engine, NULL, 0), p->engine);
	p->engine = 0;
	(void)close(take_fd(&p->supervisor));
	(void)close(take_fd(&p->api));
	if (p->broker >= 0)
		(void)close(take_fd(&p->broker));
}

void
play_broker(struct play *p, bool again)
{
	struct msg_broker_ready m = {.epoch = 7};

	play_head_told(p, &m);

	memcpy(m.catalogue, p->catalogue.digest, 32);
	if (again) {
		int pair[2];
		struct err err;

		assert_int_equal(ipc_pair(pair, &err), 0);
		SAY_FD(p->supervisor, BROKER_EDGE, broker_edge, pair[1], {0});
		(void)close(pair[1]);
		p->broker = pair[0];
	}
	SAY(p->broker, BROKER_READY, broker_ready, m);
}

void
play_broker_lost(struct play *p)
{
	(void)close(take_fd(&p->broker));
}

/* ---- messages ---- */

void
play_send(int fd, enum msg_type type, uint64_t tag, const struct buf *body, int passed)
{
	struct err err;
	struct buf b;
	int r;

	buf_init(&b, IPC_MAX + IPC_HEADER_BYTES);
	ipc_pack(&b, type, tag, buf_view(body));
	r = ipc_write(fd, buf_view(&b), &passed, passed < 0 ? 0 : 1, &err);
	/* Heads of the tree are asked for at any time, also by an engine that a test kills in the same moment. */
	if (r < 0 && !(r == -EPIPE && type == MSG_CHECKPOINT_IS))
		fail_msg("%s cannot be sent: %s", msg_info[type].name, err.text);
	buf_done(&b);
}

/* A key that is nobody's: its seed stands in every build. */
static const uint8_t head_seed[32] = "a played broker signs with this";
static const char origin[] = "play.test/audit";

static struct note_key
head_key(void)
{
	struct note_key k = {0};
	struct err err;

	(void)snprintf(k.name, sizeof(k.name), "%s", origin);
	assert_int_equal(note_key_of(head_seed, &k, &err), 0);
	return k;
}

void
play_head(struct play *p)
{
	auto_buf struct buf text = {.max = 2048}, note = {.max = 2048};
	const struct note_key k = head_key();
	struct checkpoint c = {.origin = view_str(origin)};
	struct msg_checkpoint_ask m;
	struct merkle_hash was;
	struct err err;

	play_decoded(msg_checkpoint_ask_get(p->in.body, &m, &err), "CHECKPOINT_ASK");
	c.size = m.size;
	memcpy(c.root.b, m.root, 32);
	memcpy(was.b, p->head_root, 32);
	if (p->head_size == 0)
		was = merkle_empty();
	if (!merkle_consistency_ok(p->head_size, &was, m.size, &c.root, m.proof))
		fail_msg("the head of %lu records does not continue that of %lu",
			(unsigned long)m.size, (unsigned long)p->head_size);
	checkpoint_write(&c, &text);
	assert_int_equal(note_sign(head_seed, &k, buf_view(&text), &note, &err), 0);
	p->head_size = m.size;
	memcpy(p->head_root, m.root, 32);
	(void)snprintf(p->head_note, sizeof(p->head_note), "%.*s", VIEW_ARGS(buf_view(&note)));
	p->heads++;
	SAY_TAG(p->broker, p->in.tag, CHECKPOINT_IS, checkpoint_is, -1,
		{.size = m.size, .note = buf_view(&note)});
}

void
play_head_told(struct play *p, struct msg_broker_ready *m)
{
	static char key_text[NOTE_KEY_TEXT];
	const struct note_key k = head_key();

	note_key_write(&k, key_text);
	m->checkpoint_size = p->head_size;
	memcpy(m->checkpoint_root, p->head_root, 32);
	m->audit_key = view_str(key_text);
	m->note = view_str(p->head_note);
}

void
play_head_forget(struct play *p)
{
	p->head_size = 0;
	p->head_note[0] = '\0';
}

static enum edge
edge_of(const struct play *p, int fd)
{
	for (unsigned i = 0; i < p->gates_n; i++)
		if (p->gates[i] == fd)
			return EDGE_GATEWAY_ENGINE;
	return fd == p->supervisor ? EDGE_ENGINE_SUPERVISOR
	       : fd == p->api      ? EDGE_API_ENGINE
	       : fd == p->broker   ? EDGE_ENGINE_BROKER
				   : EDGE_RELAY_ENGINE;
}

static int
receive_one(struct play *p, int fd, struct err *err)
{
	struct pollfd w = {.fd = fd, .events = POLLIN};

	ipc_msg_done(&p->in);
	if (poll(&w, 1, WAIT_MS) != 1)
		return err_set(err, -ETIMEDOUT, "nothing came");
	return ipc_read(fd, edge_of(p, fd), ROOM_ENGINE, p->room, IPC_MAX, &p->in, err);
}

static int
receive(struct play *p, int fd, struct err *err)
{
	for (;;) {
		int r = receive_one(p, fd, err);

		if (r < 0 || fd != p->broker || p->in.type != MSG_CHECKPOINT_ASK || p->heads_held)
			return r;
		play_head(p);
	}
}

void
play_want(struct play *p, int fd, enum msg_type type)
{
	struct err err = {0};
	struct msg_refused m;

	if (receive(p, fd, &err) < 0)
		fail_msg("%s is wanted: %s", msg_info[type].name, err.text);
	if (p->in.type == type)
		return;
	if (p->in.type == MSG_REFUSED && msg_refused_get(p->in.body, &m, &err) == 0)
		fail_msg("%s is wanted, refused: %.*s", msg_info[type].name, VIEW_ARGS(m.text));
	fail_msg("%s is wanted, %s came", msg_info[type].name, msg_info[p->in.type].name);
}

void
play_want_any(struct play *p, int fd)
{
	struct err err = {0};

	if (receive(p, fd, &err) < 0)
		fail_msg("something is wanted: %s", err.text);
}

bool
play_read(struct play *p, int fd)
{
	struct err err = {0};

	return receive(p, fd, &err) == 0;
}

void
play_want_either(struct play *p)
{
	struct pollfd w[] = {
		{.fd = p->api, .events = POLLIN}, {.fd = p->supervisor, .events = POLLIN}};

	assert_true(poll(w, 2, WAIT_MS) > 0);
	play_want_any(p, w[0].revents != 0 ? p->api : p->supervisor);
}

void
play_want_closed(struct play *p, int fd)
{
	struct err err = {0};
	int r;

	do
		r = receive(p, fd, &err);
	while (r == 0);
	if (r != -EPIPE && r != -ECONNRESET)
		fail_msg("it should be closed: %s", err.text);
}

void
play_want_silence(struct play *p, int fd, int ms)
{
	uint64_t until = clock_mono_ms() + (uint64_t)ms;

	/* Heads are asked for at any time. */
	for (uint64_t now = clock_mono_ms(); now < until; now = clock_mono_ms()) {
		struct pollfd w = {.fd = fd, .events = POLLIN};
		struct err err = {0};

		if (poll(&w, 1, (int)(until - now)) == 0)
			return;
		if (fd != p->broker || p->heads_held || receive_one(p, fd, &err) < 0 ||
			p->in.type != MSG_CHECKPOINT_ASK)
			fail_msg("there should be silence");
		play_head(p);
	}
}

void
play_decoded(int r, const char *what)
{
	if (r < 0)
		fail_msg("%s does not decode", what);
}

void
play_same_tag(struct play *p)
{
	assert_int_equal(p->in.tag, p->tag);
}

void
play_refused(struct play *p, enum error error)
{
	ANSWER(p, REFUSED, refused, m);
	if (m.error != (uint16_t)error)
		fail_msg("%s is wanted, %u came: %.*s", error_info(error)->code, m.error,
			VIEW_ARGS(m.text));
	assert_true(m.text.n > 8);
}

/* ---- whole steps ---- */

struct facts
play_facts(struct play *p, const struct limits *l)
{
	const uint64_t caps = 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8;
	struct facts f = {.boundary = BOUNDARY_CONTAINER,
		.host_pid = 4242,
		.uid_base = p->uid_next,
		.uid_count = 65536,
		.namespaces_own = 127,
		.namespaces_owner_host = 126,
		.cap_permitted = caps,
		.cap_effective = caps,
		.cap_bounding = caps,
		.no_new_privs = 1,
		.seccomp_mode = 2,
		.root_read_only = 1,
		.root_idmapped = 1,
		.mounts = 9,
		.mounts_writable = 4,
		.mounts_without_nodev = 2,
		.interfaces = 1,
		.cgroup_version = 1,
		.memory_bytes = l->memory_bytes,
		.socket_bytes = l->memory_bytes / 8,
		.disk_bytes = l->disk_bytes,
		.disk_inodes = l->disk_inodes,
		.pids = l->pids,
		.cpu_milli = l->cpu_milli,
		.open_files = l->open_files,
		.userns_owner = p->uid_next,
		.pending_signals = 4096};

	memcpy(f.template, p->template, 32);
	p->uid_next += 65536;
	return f;
}

int
play_spawned(struct play *p, const struct id *sandbox, const struct facts *f)
{
	int pair[2];
	struct err err;

	assert_int_equal(ipc_pair(pair, &err), 0);
	SAY_FD(p->supervisor, SPAWNED, spawned, pair[1],
		{.sandbox = *sandbox, .facts = *f, .timings = {.cloned_us = 400}});
	(void)close(pair[1]);
	return pair[0];
}

int
play_spawn(struct play *p, struct id *ret_id)
{
	struct facts f;
	int relay;

	WANT(p, p->supervisor, SPAWN, spawn, m);
	assert_memory_equal(m.template, p->template, 32);
	f = play_facts(p, &m.limits);
	relay = play_spawned(p, &m.sandbox, &f);
	SAY(relay, RELAY_READY, relay_ready, {.agent_version = 1});
	*ret_id = m.sandbox;
	return relay;
}

int
play_create(struct play *p, struct id *ret_id, struct id *ret_task)
{
	int relay;

	ASK(p, SANDBOX_CREATE, sandbox_create,
		{.caller = as_root, .tenant = view_str("acme"), .template = view_str("python")});
	relay = play_spawn(p, ret_id);
	ANSWER(p, SANDBOX_ROW, sandbox_row, row);
	assert_int_equal(row.state, SANDBOX_STATE_RUNNING);
	if (ret_task != NULL)
		*ret_task = row.task;
	return relay;
}

void
play_gone(struct play *p, const struct id *id, enum sandbox_reason reason)
{
	SAY(p->supervisor, GONE, gone,
		{.sandbox = *id, .reason = reason, .proof = {.teardown_us = 900}});
}

void
play_run(struct play *p, int relay, const struct id *sandbox, struct id *ret_job)
{
	ASK(p, JOB_RUN, job_run,
		{.caller = as_root,
			.sandbox = *sandbox,
			.kind = JOB_KIND_EXEC,
			.uid = 10001,
			.argv = view_of("true", 5)});
	WANT(p, relay, JOB_START, job_start, start);
	WANT(p, relay, JOB_SESSION, job_session, session);
	assert_true(id_eq(&start.job, &session.job));
	ANSWER(p, JOB_OPENED, job_opened, opened);
	assert_true(id_eq(&start.job, &opened.job));
	*ret_job = start.job;
}

void
play_end_job(struct play *p, int relay, const struct id *job, int32_t code)
{
	(void)p;
	SAY(relay, JOB_ENDED, job_ended,
		{.job = *job,
			.end = JOB_END_EXITED,
			.code = code,
			.stdout_seen = 3,
			.stdout_kept = 3,
			.wall_us = 900});
}

/* ---- the audit ---- */

uint64_t
play_audit(struct play *p, const struct id *task)
{
	char name[ID_TEXT];

	id_text(task, ID_TASK, name);
	return play_audit_of(p, name);
}

uint64_t
play_audit_of(struct play *p, const char *name)
{
	struct audit_chain chain = {0};
	bool more = true;

	buf_clear(&audit_text);
	while (more) {
		ASK(p, AUDIT_READ, audit_read,
			{.caller = as_root,
				.name = view_str(name),
				.after = chain.number,
				.limit = 7});
		for (;;) {
			struct err err = {0};
			struct msg_audit_row row;
			struct audit_row r;

			if (receive(p, p->api, &err) < 0)
				fail_msg("the audit does not come: %s", err.text);
			if (p->in.type == MSG_END)
				break;
			assert_int_equal(p->in.type, MSG_AUDIT_ROW);
			play_decoded(msg_audit_row_get(p->in.body, &row, &err), "AUDIT_ROW");
			r = (struct audit_row){.number = row.number, .record = row.record};
			memcpy(r.previous, row.previous, 32);
			memcpy(r.digest, row.record_digest, 32);
			if (audit_chain_add(&chain, &r, &err) < 0)
				fail_msg("the chain is broken: %s", err.text);
			buf_add_view(&audit_text, row.record);
			buf_add_byte(&audit_text, '\n');
		}
		struct msg_end end;
		play_decoded(msg_end_get(p->in.body, &end, &(struct err){0}), "END");
		more = end.more;
	}
	assert_int_equal(buf_check(&audit_text), 0);
	buf_add_byte(&audit_text, 0);
	return chain.number;
}

unsigned
play_events(struct play *p, const char *event)
{
	char what[96];
	unsigned n = 0;

	(void)p;
	(void)snprintf(what, sizeof(what), "\"event\":\"%s\"", event);
	for (const char *at = strstr((const char *)audit_text.p, what); at != NULL;
		at = strstr(at + 1, what))
		n++;
	return n;
}

bool
play_record(struct play *p, const char *event, const char *text)
{
	char what[96];
	unsigned n = 0;

	(void)p;
	(void)snprintf(what, sizeof(what), "\"event\":\"%s\"", event);
	for (const char *line = (const char *)audit_text.p, *end;
		(end = strchr(line, '\n')) != NULL; line = end + 1) {
		struct view record = view_of(line, (size_t)(end - line));

		if (memmem(record.p, record.n, what, strlen(what)) == NULL)
			continue;
		if (memmem(record.p, record.n, text, strlen(text)) == NULL)
			return false;
		n++;
	}
	return n > 0;
}

bool
play_recorded(const char *text)
{
	return strstr((const char *)audit_text.p, text) != NULL;
}

void
play_template(struct play *p, const char *name)
{
	char digest[SHA256_TEXT], path[128];
	int fd auto_fd = -1;

	hex_encode(p->template, 32, digest);
	(void)snprintf(path, sizeof(path), "templates/index/%s", name);
	fd = openat(p->state, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(dprintf(fd, "%s\n", digest), SHA256_TEXT);
}

struct caller
play_token(struct play *p, const char *tenant, const char *template, uint8_t number)
{
	struct msg_token_create m = {.caller = as_root,
		.tenant = view_str(tenant),
		.template = view_str(template),
		.label = view_str("test")};
	struct caller c = {.kind = CALLER_KIND_TOKEN};
	char prefix[17];

	memset(c.token, number, sizeof(c.token));
	memcpy(m.token, c.token, sizeof(m.token));
	(void)snprintf(prefix, sizeof(prefix), "dml_%u", number);
	m.prefix = view_str(prefix);
	ASK(p, TOKEN_CREATE, token_create, m);
	ANSWER(p, TOKEN_ROW, token_row, row);
	assert_true(view_is(row.tenant, tenant));
	return c;
}

void
play_input(struct play *p, const struct id *task, const char *path, const char *text,
	struct msg_input_row *ret)
{
	struct err err;

	ASK(p, INPUT_OPEN, input_open,
		{.caller = as_root,
			.task = *task,
			.path = view_str(path),
			.mode = 0640,
			.size_bytes = strlen(text)});
	ANSWER(p, INPUT_FILE, input_file, file);
	int fd = ipc_msg_take(&p->in, 0);
	char c;
	assert_int_equal(pread(fd, &c, 1, 0), -1); /* it is to write only */
	assert_int_equal(errno, EBADF);
	assert_int_equal(fd_write_all(fd, text, strlen(text), &err), 0);
	SAY_TAG(p->api, p->tag, INPUT_CLOSE, input_close, -1, {.complete = true});
	ANSWER(p, INPUT_ROW, input_row, row);
	/* What the api does with its descriptor now changes nothing of what is stored. */
	assert_int_equal(pwrite(fd, "XXXX", 4, 0), 4);
	(void)close(fd);
	*ret = row;
}

struct id
play_task(struct play *p, const char *tenant)
{
	ASK(p, TASK_CREATE, task_create,
		{.caller = as_root, .tenant = view_str(tenant), .template = view_str("python")});
	ANSWER(p, TASK_ROW, task_row, task);
	return task.task;
}
