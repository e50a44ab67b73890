/* SPDX-License-Identifier: Apache-2.0 */
/* See play.h: processes, descriptors, messages. */
#include "play.h"

#include "lib/base/fd.h"
#include "tests/actions/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { WAIT_MS = 20000, BROKER_UID = 64106 };

/* Everything that the broker sent to engine and dialer since play_open: for play_leaked. */
static struct buf sent;

/* ---- files ---- */

void
play_write(int dir, const char *name, const char *text)
{
	struct err err;
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text), &err), 0);
	(void)close(fd);
}

void
play_read(struct play *p, int dir, const char *name, struct buf *out)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	uint8_t chunk[8192];
	size_t n = sizeof(chunk);
	struct err err;

	(void)p;
	if (fd < 0)
		return; /* not there: nothing in it */
	while (n == sizeof(chunk)) {
		assert_int_equal(fd_read_upto(fd, chunk, sizeof(chunk), &n, &err), 0);
		buf_add(out, chunk, n);
	}
	assert_int_equal(buf_check(out), 0);
	(void)close(fd);
}

static int
make_dir(int at, const char *name, mode_t mode, uid_t owner)
{
	int fd;

	assert_int_equal(mkdirat(at, name, mode), 0);
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fchown(fd, owner, owner), 0);
	return fd;
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

/* ---- the provider ---- */

static void
provider_run(struct play *p)
{
	char dir[96], cert[96], key[96], line[32] = "";
	int out[2];
	ssize_t n;

	(void)snprintf(dir, sizeof(dir), "%s/provider", p->dir);
	(void)snprintf(cert, sizeof(cert), "%s/provider/server.pem", p->dir);
	(void)snprintf(key, sizeof(key), "%s/provider/server.key", p->dir);
	assert_non_null(getenv("DEMILUNE_PROVIDER"));
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	p->provider = fork();
	assert_true(p->provider >= 0);
	if (p->provider == 0) {
		must(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0);
		must(dup2(out[1], 1) == 1);
		if (p->tls)
			execlp("python3", "python3", getenv("DEMILUNE_PROVIDER"), "--dir", dir,
				"--cert", cert, "--key", key, (char *)NULL);
		else
			execlp("python3", "python3", getenv("DEMILUNE_PROVIDER"), "--dir", dir,
				(char *)NULL);
		_exit(127);
	}
	(void)close(out[1]);
	n = read(out[0], line, sizeof(line) - 1);
	assert_true(n > 0);
	assert_int_equal(sscanf(line, "port %hu", &p->port), 1);
	(void)close(out[0]);
}

static void
provider_end(struct play *p)
{
	if (p->provider == 0)
		return;
	(void)kill(p->provider, SIGKILL);
	assert_int_equal(waitpid(p->provider, NULL, 0), p->provider);
	p->provider = 0;
}

void
provider_script(struct play *p, const char *lines)
{
	auto_buf struct buf b = {.max = 65536};

	play_read(p, p->provider_dir, "script", &b);
	buf_add_str(&b, lines);
	buf_add_byte(&b, 0);
	assert_int_equal(buf_check(&b), 0);
	play_write(p->provider_dir, "script", (const char *)b.p);
}

static unsigned
count_lines(struct play *p, const char *name, const char *start)
{
	auto_buf struct buf b = {.max = 16 << 20};
	size_t length = strlen(start);
	unsigned n = 0;

	play_read(p, p->provider_dir, name, &b);
	for (size_t i = 0; i < b.n; i++)
		if ((i == 0 || b.p[i - 1] == '\n') && b.n - i >= length &&
			memcmp(b.p + i, start, length) == 0)
			n++;
	return n;
}

unsigned
provider_effects(struct play *p)
{
	return count_lines(p, "effects", "{");
}

unsigned
provider_requests(struct play *p, const char *start)
{
	return count_lines(p, "requests", start);
}

static void
run(const char *command)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		execlp("sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

void
play_shell(struct play *p, const char *command)
{
	char whole[1600];

	(void)snprintf(whole, sizeof(whole), "cd %s/provider && { %s; }", p->dir, command);
	run(whole);
}

void
play_provider_again(struct play *p)
{
	provider_end(p);
	provider_run(p);
}

void
play_tls(struct play *p)
{
	p->tls = true;
	play_shell(p,
		"exec 2>/dev/null; openssl req -x509 -newkey ec -pkeyopt "
		"ec_paramgen_curve:prime256v1 "
		"-nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=test && "
		"openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "
		"server.key -out server.csr -subj /CN=provider.test && "
		"printf 'subjectAltName=DNS:provider.test\\n' >san && "
		"openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 "
		"-extfile san -out server.pem && "
		"cp ca.pem ../trust/shop.pem && chmod 644 ../trust/shop.pem");
	play_provider_again(p);
}

/* ---- start and end ---- */

void
play_open(struct play *p)
{
	const char *below = getenv("TMPDIR");
	int root, secrets;

	*p = (struct play){.supervisor = -1, .engine = -1, .dialer = -1, .epoch = 1};
	assert_in_range(snprintf(p->dir, sizeof(p->dir), "%s/demilune-broker-XXXXXX",
				below != NULL ? below : "/tmp"),
		1, sizeof(p->dir) - 1);
	assert_non_null(mkdtemp(p->dir));
	assert_int_equal(chmod(p->dir, 0755), 0);
	root = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(root >= 0);
	p->state = make_dir(root, "state", 0700, BROKER_UID);
	p->trust = make_dir(root, "trust", 0755, 0);
	p->provider_dir = make_dir(root, "provider", 0755, 0);
	p->mirror[0] = make_dir(root, "mirror0", 0755, BROKER_UID);
	p->mirror[1] = make_dir(root, "mirror1", 0755, BROKER_UID);
	secrets = make_dir(root, "secrets", 0700, 0);
	play_write(secrets, "shop-key", PLAY_SECRET "\n");
	(void)close(secrets);
	(void)close(root);
	p->room = malloc(IPC_MAX);
	assert_non_null(p->room);
	buf_init(&p->edit_from, 4096);
	buf_init(&p->edit_to, 4096);
	buf_init(&sent, 256 << 20);
	play_people(p);
	provider_run(p);
}

static void
edges_close(struct play *p)
{
	if (p->supervisor >= 0)
		(void)close(take_fd(&p->supervisor));
	if (p->engine >= 0)
		(void)close(take_fd(&p->engine));
	if (p->dialer >= 0)
		(void)close(take_fd(&p->dialer));
}

/* What the broker said, as comments of the test. */
static void
play_show_log(struct play *p)
{
	auto_buf struct buf b = {.max = 1 << 20};
	int root = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	play_read(p, root, "log", &b);
	(void)close(root);
	if (b.n != 0)
		print_message("# %.*s", VIEW_ARGS(buf_view(&b)));
}

void
play_close(struct play *p)
{
	if (p->broker != 0)
		play_kill(p);
	play_show_log(p);
	provider_end(p);
	ipc_msg_done(&p->in);
	catalogue_done(&p->catalogue);
	play_people_done(p);
	(void)close(p->state);
	(void)close(p->trust);
	(void)close(p->provider_dir);
	remove_tree(AT_FDCWD, p->dir);
	buf_done(&p->edit_from);
	buf_done(&p->edit_to);
	buf_done(&sent);
	free(p->room);
}

void
play_edit(struct play *p, const char *from, const char *to)
{
	buf_clear(&p->edit_from);
	buf_clear(&p->edit_to);
	buf_add_str(&p->edit_from, from);
	buf_add_str(&p->edit_to, to);
	for (size_t i = 0; i < p->edit_from.n; i++)
		if (p->edit_from.p[i] == '\'')
			p->edit_from.p[i] = '"';
	for (size_t i = 0; i < p->edit_to.n; i++)
		if (p->edit_to.p[i] == '\'')
			p->edit_to.p[i] = '"';
}

static void
replace(const struct buf *in, struct view from, struct view to, struct buf *out)
{
	for (size_t i = 0; i < in->n;) {
		if (from.n != 0 && in->n - i >= from.n && memcmp(in->p + i, from.p, from.n) == 0) {
			buf_add_view(out, to);
			i += from.n;
		} else {
			buf_add_byte(out, in->p[i++]);
		}
	}
	assert_int_equal(buf_check(out), 0);
}

/* The catalogue as edited, for the broker and for the play itself. */
static int
catalogue_fd(struct play *p)
{
	static const char *const names[] = {"note", "order_status", "refund", "reply"};
	auto_buf struct buf all = {.max = CATALOGUE_BYTES_MAX};
	struct err err;
	int fd;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		auto_buf struct buf one = {.max = OPERATION_BYTES_MAX},
				    two = {.max = OPERATION_BYTES_MAX},
				    three = {.max = OPERATION_BYTES_MAX};

		sample_document(names[i], p->port, &one);
		replace(&one, buf_view(&p->edit_from), buf_view(&p->edit_to), &two);
		replace(&two, view_str(p->tls ? "\"tls\":false},\"response_max\":65536," : ""),
			view_str("\"tls\":true},\"response_max\":65536,\"roots\":\"shop\","),
			&three);
		catalogue_put(&all, buf_view(&three));
	}
	assert_int_equal(buf_check(&all), 0);
	fd = sample_fd(buf_view(&all), F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	catalogue_done(&p->catalogue);
	p->catalogue = (struct catalogue){0};
	if (catalogue_read(fd, &p->catalogue, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

/* As the supervisor starts it: own uid, three capabilities to drop the rest with. */
static void
become_broker(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	uint32_t caps = 1U << CAP_SETUID | 1U << CAP_SETGID | 1U << CAP_SETPCAP;
	struct __user_cap_data_struct data[2] = {
		{.effective = caps, .permitted = caps, .inheritable = caps}};

	must(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0);
	must(setresgid(BROKER_UID, BROKER_UID, BROKER_UID) == 0 &&
		setresuid(BROKER_UID, BROKER_UID, BROKER_UID) == 0);
	must(syscall(SYS_capset, &head, data) == 0);
	for (unsigned cap = 0; cap < 32; cap++)
		if ((caps >> cap & 1) != 0)
			must(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) == 0);
}

static void
child(struct play *p, const int fds[6])
{
	const char *path = getenv("DEMILUNE_BROKER");
	char log[96];
	struct err err;
	int fd;

	(void)snprintf(log, sizeof(log), "%s/log", p->dir);
	fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	must(fd >= 0 && dup2(fd, 2) == 2);
	must(path != NULL && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0);
	must(fd_arrange(fds, 6, 3, &err) == 0);
	if (p->file_size != 0) {
		const struct rlimit limit = {.rlim_cur = p->file_size, .rlim_max = p->file_size};

		must(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	}
	become_broker();
	must(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0);
	execle(path, path, (char *)NULL, (char *const[]){NULL});
	_exit(127);
}

static void
tell_secret(struct play *p)
{
	char path[96];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/secrets/shop-key", p->dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return; /* a test took it away */
	SAY_TAG(p->supervisor, 0, SECRET, secret, fd, {.name = "shop-key"});
	(void)close(fd);
}

void
play_launch_only(struct play *p)
{
	int supervisor[2], engine[2], dialer[2], catalogue = catalogue_fd(p);
	struct err err;

	assert_int_equal(p->broker, 0);
	assert_int_equal(ipc_pair(supervisor, &err), 0);
	assert_int_equal(ipc_pair(engine, &err), 0);
	assert_int_equal(ipc_pair(dialer, &err), 0);
	p->broker = fork();
	assert_true(p->broker >= 0);
	if (p->broker == 0)
		child(p, (const int[]){engine[1], dialer[1], supervisor[1], p->state, p->trust,
				 catalogue});
	(void)close(supervisor[1]);
	(void)close(engine[1]);
	(void)close(dialer[1]);
	(void)close(catalogue);
	p->supervisor = supervisor[0];
	p->engine = engine[0];
	p->dialer = dialer[0];
	p->nheld = 0;
}

void
play_launch(struct play *p)
{
	play_launch_only(p);
	tell_secret(p);
	for (size_t i = 0; p->mirrors && i < ARRAY_LEN(p->mirror); i++)
		SAY_TAG(p->supervisor, 0, MIRROR, mirror, p->mirror[i], {.path = "mirror"});
	struct msg_broker_begin begin = {0};
	(void)snprintf(begin.origin, sizeof(begin.origin), "%s",
		p->origin != NULL ? p->origin : "play.test/audit");
	SAY_TAG(p->supervisor, 0, BROKER_BEGIN, broker_begin, -1, begin);
	if (p->dials == DIALER_AWAY)
		(void)close(take_fd(&p->dialer));
}

void
play_start(struct play *p)
{
	play_launch(p);
	WANT(p, BROKER_READY, broker_ready, ready);
	p->epoch = ready.epoch;
	play_want(p, MSG_APPROVERS_LOADED);
}

int
play_wait(struct play *p)
{
	int status = 0;

	for (int i = 0; i < WAIT_MS / 10; i++) {
		pid_t got = waitpid(p->broker, &status, WNOHANG);

		if (got == p->broker) {
			p->broker = 0;
			edges_close(p);
			return status;
		}
		(void)poll(NULL, 0, 10);
	}
	fail_msg("the broker does not end");
	return -1;
}

void
play_kill(struct play *p)
{
	(void)kill(p->broker, SIGKILL);
	assert_int_equal(waitpid(p->broker, NULL, 0), p->broker);
	p->broker = 0;
	edges_close(p);
}

void
play_restart(struct play *p)
{
	play_kill(p);
	play_start(p);
}

void
play_engine_again(struct play *p)
{
	int engine[2];
	struct err err;

	assert_int_equal(ipc_pair(engine, &err), 0);
	(void)close(take_fd(&p->engine));
	p->engine = engine[0];
	SAY_TAG(p->supervisor, 0, BROKER_ENGINE, broker_engine, engine[1], {0});
	(void)close(engine[1]);
	play_want(p, MSG_BROKER_READY);
	play_want(p, MSG_APPROVERS_LOADED);
}

/* ---- messages ---- */

void
play_send(int fd, enum msg_type type, uint64_t tag, const struct buf *body, int passed)
{
	struct err err = {0};
	struct buf b;

	buf_init(&b, IPC_MAX + IPC_HEADER_BYTES);
	ipc_pack(&b, type, tag, buf_view(body));
	assert_int_equal(buf_check(&b), 0);
	for (;;) {
		int r = ipc_write(fd, buf_view(&b), &passed, passed >= 0 ? 1 : 0, &err);
		struct pollfd wait = {.fd = fd, .events = POLLOUT};

		if (r == 0)
			break;
		if (r != -EAGAIN)
			fail_msg("%s: %s", msg_info[type].name, err.text);
		assert_int_equal(poll(&wait, 1, WAIT_MS), 1);
	}
	buf_done(&b);
}

static int
connect_provider(struct play *p)
{
	const struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_port = htons(p->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static void
dial_answer(struct play *p, uint64_t tag)
{
	int fd = connect_provider(p);

	SAY_TAG(p->dialer, tag, DIALED, dialed, fd, {.address = "127.0.0.1"});
	(void)close(fd);
}

void
play_dial_now(struct play *p)
{
	for (size_t i = 0; i < p->nheld; i++)
		dial_answer(p, p->held[i]);
	p->nheld = 0;
}

void
play_record(const struct ipc_msg *m)
{
	buf_add_view(&sent, m->body);
	assert_int_equal(buf_check(&sent), 0);
}

/* One message of the broker to the dialer. */
static void
dialer_turn(struct play *p)
{
	struct ipc_msg in = {0};
	struct msg_dial m;
	struct err err;

	if (ipc_read(p->dialer, EDGE_BROKER_DIALER, ROOM_BROKER, p->room, IPC_MAX, &in, &err) < 0) {
		(void)close(take_fd(&p->dialer));
		return;
	}
	play_record(&in);
	assert_int_equal(in.type, MSG_DIAL);
	assert_int_equal(msg_dial_get(in.body, &m, &err), 0);
	assert_string_equal(m.host, "provider.test");
	assert_int_equal(m.port, p->port);
	p->dialled++;
	p->dial = m;
	if (p->dials == DIALER_CONNECTS) {
		dial_answer(p, in.tag);
	} else if (p->dials == DIALER_REFUSES) {
		SAY_TAG(p->dialer, in.tag, DIAL_FAILED, dial_failed, -1,
			{.reason = DIAL_UNREACHABLE, .text = "refused by the play"});
	} else {
		assert_true(p->nheld < ARRAY_LEN(p->held));
		p->held[p->nheld++] = in.tag;
	}
	ipc_msg_done(&in);
}

/* Waits for one of the two; true: the engine has something. */
static bool
turn(struct play *p, int ms)
{
	struct pollfd fds[2] = {
		{.fd = p->engine, .events = POLLIN}, {.fd = p->dialer, .events = POLLIN}};
	int n = poll(fds, 2, ms);

	assert_true(n >= 0);
	if (fds[1].revents != 0)
		dialer_turn(p);
	return fds[0].revents != 0;
}

static bool
turn_until(struct play *p, uint64_t until)
{
	uint64_t now = clock_mono_ms();

	return now < until && turn(p, (int)(until - now));
}

static void
want(struct play *p, const char *what)
{
	uint64_t until = clock_mono_ms() + WAIT_MS;
	struct err err = {0};

	ipc_msg_done(&p->in);
	p->in = (struct ipc_msg){0};
	while (!turn_until(p, until))
		if (clock_mono_ms() >= until)
			fail_msg("%s does not come", what);
	if (ipc_read(p->engine, EDGE_ENGINE_BROKER, ROOM_BROKER, p->room, IPC_MAX, &p->in, &err) <
		0)
		fail_msg("%s does not come: %s", what, err.text);
	play_record(&p->in);
}

void
play_want_any(struct play *p)
{
	want(p, "a message");
}

void
play_turn(struct play *p, int ms)
{
	(void)turn(p, ms);
}

void
play_want(struct play *p, enum msg_type type)
{
	want(p, msg_info[type].name);
	if (p->in.type != type)
		fail_msg("%s came, %s is due", msg_info[p->in.type].name, msg_info[type].name);
}

void
play_silence(struct play *p, int ms)
{
	uint64_t until = clock_mono_ms() + (uint64_t)ms;

	while (clock_mono_ms() < until)
		if (turn_until(p, until))
			fail_msg("something came where nothing was due");
}

void
play_until_dialled(struct play *p, unsigned n)
{
	uint64_t until = clock_mono_ms() + WAIT_MS;

	while (p->dialled < n) {
		if (clock_mono_ms() >= until)
			fail_msg("the broker does not ask the dialer");
		(void)turn_until(p, until);
	}
}

void
play_decoded(int r, const char *what)
{
	if (r < 0)
		fail_msg("%s cannot be decoded", what);
}

/* ---- what got out ---- */

bool
play_leaked(struct play *p, const char *text)
{
	auto_buf struct buf all = {.max = 512 << 20};
	int root = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool found;

	play_read(p, p->state, "ledger", &all);
	play_read(p, root, "log", &all);
	(void)close(root);
	found = memmem(all.p, all.n, text, strlen(text)) != NULL;
	return found || memmem(sent.p, sent.n, text, strlen(text)) != NULL;
}
