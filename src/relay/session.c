/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A caller attached to a job: an API_RELAY edge that the engine passed. Output goes out as the socket takes
 * it; bytes that were not kept are told as a gap. A session that closes or breaks the table is gone, the
 * command goes on; a file job without its caller is stopped, so that no half of a file is committed.
 */
#include "job.h"

#include <errno.h>

enum session_state {
	SESSION_OPEN,
};

static struct job *
job_of(const struct ipc_peer *peer)
{
	return peer->owner;
}

static int
on_in(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_in *m, struct err *err)
{
	struct job *j = job_of(peer);

	(void)in;
	if (!job_runs(j))
		return 0; /* it crossed the end */
	if (!j->in.wanted || j->in.end || j->in.feed >= 0 || m->data.n == 0)
		return err_set(err, -EPROTO, "IN for a job that takes none");
	buf_add_view(&j->in.wait, m->data);
	if (buf_check(&j->in.wait) < 0)
		return err_set(err, -ENOMEM, "no memory for stdin");
	job_pump(j);
	return 0;
}

static int
on_in_end(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_in_end *m, struct err *err)
{
	struct job *j = job_of(peer);

	(void)in, (void)m;
	if (!job_runs(j))
		return 0;
	if (!j->in.wanted || j->in.end || j->in.feed >= 0)
		return err_set(err, -EPROTO, "IN_END for a job that takes none");
	j->in.end = true;
	job_pump(j);
	return 0;
}

static int
on_in_resize(
	struct ipc_peer *peer, struct ipc_msg *in, const struct msg_in_resize *m, struct err *err)
{
	struct job *j = job_of(peer);

	(void)in;
	if (!job_runs(j))
		return 0;
	if (!j->pty)
		return err_set(err, -EPROTO, "IN_RESIZE of a job without a terminal");
	CHANNEL_PUT(&j->relay->out, j->stream, RESIZE, resize,
		{.rows = m->rows, .columns = m->columns});
	guest_flush(j->relay);
	return 0;
}

IPC_HANDLER(in, on_in)
IPC_HANDLER(in_end, on_in_end)
IPC_HANDLER(in_resize, on_in_resize)

static const struct ipc_row rows[] = {
	IPC_ROW(IN, IN(SESSION_OPEN), on_in),
	IPC_ROW(IN_END, IN(SESSION_OPEN), on_in_end),
	IPC_ROW(IN_RESIZE, IN(SESSION_OPEN), on_in_resize),
};

void
session_close(struct job *j)
{
	ipc_peer_close(j->session);
	j->session = NULL;
}

static void
on_lost(struct ipc_peer *peer, const struct err *why)
{
	struct job *j = job_of(peer);
	bool complete = j->in.wanted && (j->in.end || j->in.feed >= 0);

	(void)why; /* a caller may always go */
	session_close(j);
	if (j->kind != JOB_KIND_EXEC && !complete && job_runs(j)) {
		j->cancelled = true;
		job_stop(j);
	}
	job_pump(j);
}

static void
on_drained(struct ipc_peer *peer)
{
	job_pump(job_of(peer));
}

static bool
can_send(const struct job *j)
{
	return j->session != NULL && j->session->fd >= 0 && j->session->fault.code == 0 &&
	       j->session->queued_bytes == 0;
}

/* How far the session may go now: without `live`, only the head is certain to stay before the end. */
static uint64_t
sendable(const struct job *j, const struct stream *s)
{
	if (!job_runs(j) || j->live || j->kind != JOB_KIND_EXEC)
		return s->store.seen;
	return s->store.head_n;
}

static bool
send_stream(struct job *j, struct stream *s)
{
	uint64_t gap_end = 0, end = sendable(j, s);
	struct view v;

	if (s->sent >= end)
		return false;
	v = store_at(&s->store, s->sent, &gap_end);
	if (v.n == 0) {
		IPC_SEND(j->session, 0, OUT_GAP, out_gap,
			{.output = s->output, .from = s->sent, .to = gap_end});
		s->sent = gap_end;
		return true;
	}
	if (v.n > end - s->sent)
		v.n = (size_t)(end - s->sent);
	if (v.n > CHANNEL_DATA_MAX)
		v.n = CHANNEL_DATA_MAX;
	IPC_SEND(j->session, 0, OUT, out, {.output = s->output, .offset = s->sent, .data = v});
	s->sent += v.n;
	return true;
}

static bool
send_entry(struct job *j)
{
	const uint8_t *p = j->entries.p + j->entries_at;
	struct frame_entry m;
	struct err err = {0};
	size_t n;

	if (j->entries_at == j->entries.n)
		return false;
	n = (size_t)p[0] << 8 | p[1];
	must(frame_entry_get(view_of(p + 2, n), &m, &err) == 0); /* it was checked when it came */
	IPC_SEND(j->session, 0, OUT_ENTRY, out_entry,
		{.name = m.name,
			.kind = m.kind,
			.mode = m.mode,
			.size_bytes = m.size_bytes,
			.mtime = m.mtime});
	j->entries_at += 2 + n;
	j->out.sent += n;
	return true;
}

void
session_pump(struct job *j)
{
	while (can_send(j)) {
		bool sent = job_lists(j) ? send_entry(j) : send_stream(j, &j->out);

		if (can_send(j) && send_stream(j, &j->err))
			sent = true;
		if (!sent)
			break;
	}
	if (!can_send(j) || job_runs(j))
		return;
	if (!j->end_told) {
		j->end_told = true;
		IPC_SEND(j->session, 0, OUT_END, out_end, {0});
	}
	if (can_send(j))
		session_close(j);
}

void
session_attach(struct job *j, int fd, uint64_t stdout_from, uint64_t stderr_from)
{
	struct err err = {0};
	struct ipc_peer *peer = ipc_peer_new(j->relay->loop, fd, EDGE_API_RELAY, ROOM_RELAY, rows,
		ARRAY_LEN(rows), j, on_lost, &err);

	if (peer == NULL)
		return;   /* the caller sees its end closed and can ask again */
	session_close(j); /* the caller that attached before is taken to be gone */
	peer->state = SESSION_OPEN;
	peer->on_drained = on_drained;
	j->session = peer;
	j->attached = true;
	j->end_told = false;
	if (!job_lists(j)) {
		j->out.sent = stdout_from < j->out.store.seen ? stdout_from : j->out.store.seen;
		j->err.sent = stderr_from < j->err.store.seen ? stderr_from : j->err.store.seen;
	}
	job_pump(j);
}
