/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs of the stand-in: what the text of a command makes it do. */
#include "fake.h"

#include "lib/base/clock.h"
#include "lib/base/hex.h"
#include "lib/base/num.h"
#include "lib/base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SESSION_QUEUE_BYTES = 1 << 20 };

static int on_in(
	struct ipc_peer *peer, struct ipc_msg *in, const struct msg_in *m, struct err *err);
static int on_in_end(
	struct ipc_peer *peer, struct ipc_msg *in, const struct msg_in_end *m, struct err *err);
static int on_in_resize(
	struct ipc_peer *peer, struct ipc_msg *in, const struct msg_in_resize *m, struct err *err);
IPC_HANDLER(in, on_in)
IPC_HANDLER(in_end, on_in_end)
IPC_HANDLER(in_resize, on_in_resize)
static const struct ipc_row session_rows[] = {
	IPC_ROW(IN, IN_ANY, on_in),
	IPC_ROW(IN_END, IN_ANY, on_in_end),
	IPC_ROW(IN_RESIZE, IN_ANY, on_in_resize),
};

static void
on_session_lost(struct ipc_peer *peer, const struct err *why)
{
	struct fake_job *j = peer->owner;

	(void)why;
	if (j->session == peer)
		j->session = NULL;
	ipc_peer_close(peer);
}

/* The next piece of a stream; as the real relay, a job that is not live keeps head and tail only. */
static void
send_piece(struct fake_job *j, enum output o)
{
	uint64_t from = j->sent[o], to = j->out[o].n, half = j->keep / 2;
	bool cut = !j->live && to > j->keep;

	if (cut && from == half) {
		IPC_SEND(j->session, 0, OUT_GAP, out_gap,
			{.output = o, .from = half, .to = to - half});
		from = to - half;
	} else if (cut && from < half) {
		to = half;
	}
	if (to - from > 32768)
		to = from + 32768;
	IPC_SEND(j->session, 0, OUT, out,
		{.output = o,
			.offset = from,
			.data = view_of(j->out[o].p + from, (size_t)(to - from))});
	j->sent[o] = to;
}

/* What has not been sent yet, no faster than it is read: the rest when the queue is empty. */
static void
send_output(struct fake_job *j)
{
	for (enum output o = OUTPUT_STDOUT; o < OUTPUT_MAX; o++)
		while (j->session != NULL && j->session->queued_bytes < SESSION_QUEUE_BYTES &&
			j->sent[o] < j->out[o].n)
			send_piece(j, o);
	if (j->session == NULL || j->reason == JOB_REASON_RUNNING || j->out_ended ||
		j->sent[0] < j->out[0].n || j->sent[1] < j->out[1].n)
		return;
	j->out_ended = true;
	if (j->reason != JOB_REASON_AGENT_LOST)
		IPC_SEND(j->session, 0, OUT_END, out_end, {0});
}

static void
on_session_drained(struct ipc_peer *peer)
{
	send_output(peer->owner);
}

void
fake_job_row(struct fake_job *j, uint64_t tag)
{
	uint64_t ended = j->reason == JOB_REASON_RUNNING ? 0 : clock_real_ms();

	if (j->fake->engine == NULL)
		return; /* the api went first */
	IPC_SEND(j->fake->engine, tag, JOB_ROW, job_row,
		{.job = j->id,
			.sandbox = j->sandbox,
			.kind = j->kind,
			.reason = j->reason,
			.code = j->code,
			.uid = 10001,
			.holders = j->holders,
			.timeout_ms = j->timeout_ms,
			.started_ms = clock_real_ms(),
			.ended_ms = ended,
			.wall_us = 1500,
			.cpu_us = 700,
			.stdout_seen = j->out[0].n,
			.stdout_kept = j->out[0].n,
			.stderr_seen = j->out[1].n,
			.stderr_kept = j->out[1].n,
			.stdin_bytes = j->in.n,
			.text = view_str(j->text),
			.cwd = view_str(j->path)});
}

void
fake_job_end(struct fake_job *j, enum job_reason reason, int code)
{
	if (j->reason != JOB_REASON_RUNNING)
		return;
	ev_timer_stop(j->fake->loop, &j->timer);
	j->reason = reason;
	j->code = code;
	send_output(j);
	/* Queued output is sent before the end of the socket is seen. */
	if (j->session != NULL && reason == JOB_REASON_AGENT_LOST) {
		ipc_peer_close(j->session);
		j->session = NULL;
	}
	if (j->tag != 0)
		fake_job_row(j, j->tag);
	j->tag = 0;
}

static void
on_timer(struct ev_loop *loop, ev_timer *w, int events)
{
	struct fake_job *j = container_of(w, struct fake_job, timer);
	bool timeout = j->code == -1;

	(void)loop, (void)events;
	fake_job_end(j, timeout ? JOB_REASON_TIMEOUT : JOB_REASON_EXITED, timeout ? 9 : 0);
}

static uint64_t
argument(const char *text)
{
	const char *blank = strchr(text, ' ');
	uint64_t v = 0;

	if (blank == NULL || num_u64(view_str(blank + 1), UINT32_MAX, &v) < 0)
		return 0;
	return v;
}

static void
add(struct fake_job *j, enum output o, const char *text)
{
	buf_add_str(&j->out[o], text);
}

static void
on_child_out(struct ev_loop *loop, ev_io *w, int events)
{
	struct fake_job *j = container_of(w, struct fake_job, child_out);
	char bytes[4096];
	ssize_t n = read(w->fd, bytes, sizeof(bytes));
	int status = 0;

	(void)events;
	if (n > 0) {
		buf_add(&j->out[0], bytes, (size_t)n);
		send_output(j);
		return;
	}
	ev_io_stop(loop, w);
	(void)close(w->fd);
	(void)close(j->child_in);
	(void)waitpid(j->child, &status, 0);
	j->child = 0;
	fake_job_end(j, WIFEXITED(status) ? JOB_REASON_EXITED : JOB_REASON_SIGNALLED,
		WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

/* argv that begins with python3 runs as it is: the program of a code context is ours. */
static void
run_python(struct fake_job *j, struct view argv)
{
	char *words[8] = {0};
	int in[2], out[2];

	for (size_t at = 0, n = 0; at < argv.n && n < 7; n++) {
		words[n] = (char *)(uintptr_t)argv.p + at;
		at += strlen(words[n]) + 1;
	}
	must(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
	j->child = fork();
	if (j->child == 0) {
		(void)setpgid(0, 0);
		(void)dup2(in[0], 0);
		(void)dup2(out[1], 1);
		(void)execvp(words[0], words);
		_exit(127);
	}
	(void)close(in[0]);
	(void)close(out[1]);
	j->child_in = in[1];
	ev_io_init(&j->child_out, on_child_out, out[0], EV_READ);
	ev_io_start(j->fake->loop, &j->child_out);
}

/* The little language of commands. */
static void
run_command(struct fake_job *j)
{
	const char *t = j->text;
	uint64_t n = argument(t);

	if (strncmp(t, "echo ", 5) == 0) {
		add(j, OUTPUT_STDOUT, t + 5);
		add(j, OUTPUT_STDOUT, "\n");
		fake_job_end(j, JOB_REASON_EXITED, 0);
	} else if (strncmp(t, "err ", 4) == 0) {
		add(j, OUTPUT_STDERR, t + 4);
		fake_job_end(j, JOB_REASON_EXITED, 1);
	} else if (strncmp(t, "exit ", 5) == 0) {
		fake_job_end(j, JOB_REASON_EXITED, (int)n);
	} else if (strncmp(t, "kill ", 5) == 0) {
		fake_job_end(j, JOB_REASON_SIGNALLED, (int)n);
	} else if (strncmp(t, "flood ", 6) == 0) {
		for (uint64_t i = 0; i < n; i++)
			buf_add_byte(&j->out[0], (uint8_t)('a' + i % 26));
		fake_job_end(j, JOB_REASON_EXITED, 0);
	} else if (strncmp(t, "raw ", 4) == 0) {
		uint8_t bytes[512];
		size_t len = strlen(t + 4) / 2;

		must(hex_decode(view_str(t + 4), bytes, len) == 0);
		for (size_t i = 0; i < len;
			i++) { /* a byte at a time, so that characters are cut */
			buf_add_byte(&j->out[0], bytes[i]);
			if (j->live)
				send_output(j);
		}
		fake_job_end(j, JOB_REASON_EXITED, 0);
	} else if (strncmp(t, "sleep ", 6) == 0) {
		bool timeout = j->timeout_ms < n;

		add(j, OUTPUT_STDOUT, "begun\n");
		if (j->live)
			send_output(j);
		j->code = timeout ? -1 : 0;
		ev_timer_set(&j->timer, (double)(timeout ? j->timeout_ms : n) / 1e3, 0);
		ev_timer_start(j->fake->loop, &j->timer);
	} else if (strcmp(t, "lost") == 0) {
		add(j, OUTPUT_STDOUT, "partial");
		fake_job_end(j, JOB_REASON_AGENT_LOST, 0);
	} else if (strcmp(t, "missing") == 0) {
		fake_job_end(j, JOB_REASON_NOT_STARTED, ENOENT);
	} else if (strcmp(t, "holders") == 0) {
		j->holders = true;
		fake_job_end(j, JOB_REASON_EXITED, 0);
	} else if (strcmp(t, "crash") == 0) {
		fake_crash(j->fake);
	} else if (strcmp(t, "rubbish") == 0) {
		fake_send_rubbish(j->fake);
	} else if (strcmp(t, "hang up") == 0) {
		fake_hang_up(j->fake);
	} else if (strncmp(t, "stall ", 6) == 0) {
		(void)usleep((useconds_t)n * 1000); /* the whole stand-in: it reads nothing */
		fake_job_end(j, JOB_REASON_EXITED, 0);
	} else if (strcmp(t, "cat") != 0 && !j->pty) {
		add(j, OUTPUT_STDERR, "sh: not found\n");
		fake_job_end(j, JOB_REASON_EXITED, 127);
	}
}

static struct fake_file *
file_find(struct fake *f, const char *path)
{
	for (size_t i = 0; i < FAKE_FILES; i++)
		if (f->files[i].used && strcmp(f->files[i].path, path) == 0)
			return &f->files[i];
	return NULL;
}

static struct fake_file *
file_make(struct fake *f, const char *path)
{
	struct fake_file *file = file_find(f, path);

	for (size_t i = 0; file == NULL && i < FAKE_FILES; i++)
		if (!f->files[i].used)
			file = &f->files[i];
	must(file != NULL);
	buf_done(&file->bytes);
	*file = (struct fake_file){.used = true};
	buf_init(&file->bytes, 64 << 20);
	(void)snprintf(file->path, sizeof(file->path), "%s", path);
	return file;
}

static void
entry(struct fake_job *j, const struct fake_file *file)
{
	const char *name = strrchr(file->path, '/') + 1;

	IPC_SEND(j->session, 0, OUT_ENTRY, out_entry,
		{.name = view_str(name),
			.kind = file->directory ? FILE_KIND_DIRECTORY : FILE_KIND_REGULAR,
			.mode = file->mode,
			.size_bytes = file->bytes.n,
			.mtime = 1700000000});
}

static void
run_file(struct fake_job *j)
{
	struct fake_file *file = file_find(j->fake, j->path);
	size_t n = strlen(j->path);

	if (j->kind == JOB_KIND_FILE_WRITE || j->kind == JOB_KIND_TREE_UP)
		return; /* at the end of its stdin */
	if (j->kind == JOB_KIND_FILE_MKDIR) {
		file = file_make(j->fake, j->path);
		file->directory = true;
		file->mode = j->mode;
	} else if (j->kind == JOB_KIND_FILE_LIST) {
		for (size_t i = 0; i < FAKE_FILES; i++)
			if (j->fake->files[i].used &&
				strncmp(j->fake->files[i].path, j->path, n) == 0 &&
				j->fake->files[i].path[n] != 0)
				entry(j, &j->fake->files[i]);
	} else if (file == NULL) {
		fake_job_end(j, JOB_REASON_NOT_STARTED, ENOENT);
		return;
	} else if (j->kind == JOB_KIND_FILE_STAT) {
		entry(j, file);
	} else if (j->kind == JOB_KIND_FILE_DELETE) {
		file->used = false;
	} else if (file->directory) {
		fake_job_end(j, JOB_REASON_NOT_STARTED, EISDIR);
		return;
	} else {
		buf_add_view(&j->out[0], buf_view(&file->bytes));
	}
	fake_job_end(j, JOB_REASON_EXITED, 0);
}

static int
on_in(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_in *m, struct err *err)
{
	struct fake_job *j = peer->owner;

	(void)in, (void)err;
	buf_add_view(&j->in, m->data);
	if (j->child > 0) {
		must(j->cell_open); /* nothing goes to an interpreter before it is recorded */
		must(write(j->child_in, m->data.p, m->data.n) == (ssize_t)m->data.n);
	} else if (j->kind == JOB_KIND_EXEC) {
		buf_add_view(&j->out[0], m->data);
		if (j->live)
			send_output(j);
		if (j->pty && view_is(m->data, "exit\n"))
			fake_job_end(j, JOB_REASON_EXITED, 3);
	}
	return 0;
}

static int
on_in_end(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_in_end *m, struct err *err)
{
	struct fake_job *j = peer->owner;
	struct fake_file *file;

	(void)in, (void)m, (void)err;
	if (j->kind == JOB_KIND_EXEC) {
		fake_job_end(j, JOB_REASON_EXITED, 0);
	} else if (strncmp(j->path, "/full/", 6) == 0) {
		fake_job_end(j, JOB_REASON_NOT_STARTED, ENOSPC);
	} else if (j->kind == JOB_KIND_FILE_WRITE && j->in.n != j->size) {
		fake_job_end(j, JOB_REASON_NOT_STARTED, EINVAL);
	} else {
		file = file_make(j->fake, j->path);
		file->mode = j->mode;
		buf_add_view(&file->bytes, buf_view(&j->in));
		fake_job_end(j, JOB_REASON_EXITED, 0);
	}
	return 0;
}

static int
on_in_resize(
	struct ipc_peer *peer, struct ipc_msg *in, const struct msg_in_resize *m, struct err *err)
{
	struct fake_job *j = peer->owner;

	(void)in, (void)err;
	buf_addf(&j->out[0], "[%ux%u]", m->rows, m->columns);
	send_output(j);
	return 0;
}

void
fake_job_attach(struct fake_job *j, uint64_t tag, uint64_t from_out, uint64_t from_err)
{
	struct err err = {0};
	int pair[2];

	must(ipc_pair(pair, &err) == 0);
	if (j->session != NULL)
		ipc_peer_close(j->session);
	j->session = ipc_peer_new(j->fake->loop, pair[0], EDGE_API_RELAY, ROOM_RELAY, session_rows,
		3, j, on_session_lost, &err);
	must(j->session != NULL);
	j->session->on_drained = on_session_drained;
	j->out_ended = false;
	j->sent[0] = from_out;
	j->sent[1] = from_err;
	IPC_SEND_FD(j->fake->engine, tag, JOB_OPENED, job_opened, pair[1], {.job = j->id});
	(void)close(pair[1]);
	j->tag = tag;
	if (j->reason == JOB_REASON_RUNNING)
		return;
	send_output(j);
	fake_job_row(j, tag);
	j->tag = 0;
}

struct fake_job *
fake_job_new(struct fake *f, uint64_t tag, const struct msg_job_run *m)
{
	struct fake_job *j = calloc(1, sizeof(*j));

	must(j != NULL && f->njobs < FAKE_JOBS);
	f->jobs[f->njobs++] = j;
	j->fake = f;
	id_new(&j->id);
	j->sandbox = m->sandbox;
	j->kind = m->kind;
	j->live = m->live;
	j->pty = m->pty;
	j->keep = m->keep_bytes;
	j->timeout_ms = m->timeout_ms;
	j->size = m->size_bytes;
	j->mode = m->mode;
	j->used = true;
	(void)snprintf(j->text, sizeof(j->text), "%.*s",
		(int)strnlen((const char *)m->argv.p, m->argv.n),
		m->argv.n == 0 ? "" : (const char *)m->argv.p);
	(void)snprintf(j->path, sizeof(j->path), "%.*s", (int)m->path.n, (const char *)m->path.p);
	for (enum output o = OUTPUT_STDOUT; o < OUTPUT_MAX; o++)
		buf_init(&j->out[o], 64 << 20);
	buf_init(&j->in, 64 << 20);
	ev_timer_init(&j->timer, on_timer, 0, 0);
	fake_job_attach(j, tag, 0, 0);
	return j;
}

void
fake_job_start(struct fake_job *j, struct view argv)
{
	if (strcmp(j->text, "python3") == 0)
		run_python(j, argv);
	else if (j->kind == JOB_KIND_EXEC)
		run_command(j);
	else
		run_file(j);
}
