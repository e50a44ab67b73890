/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs; see job.h. The message table of API_RELAY is here. */
#include "job.h"

#include "lib/loop/loop.h"
#include "local.h"

#include <errno.h>

enum { SESSION_OPEN, SESSION_ENDED };
enum { TEXTS_MAX = 16384 };

static void
maybe_done(struct job *job)
{
	if (job->row_known && job->out_ended)
		job->ops->done(job, &job->row);
}

static int
on_out(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_out *m, struct err *err)
{
	struct job *job = peer->owner;

	(void)in, (void)err;
	if (job->ops->out != NULL)
		job->ops->out(job, m->output, m->offset, m->data);
	return 0;
}
IPC_HANDLER(out, on_out)

static int
on_out_gap(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_out_gap *m, struct err *err)
{
	struct job *job = peer->owner;

	(void)in;
	if (m->from > m->to)
		return err_set(err, -EPROTO, "a gap that ends before it begins");
	if (job->ops->gap != NULL)
		job->ops->gap(job, m->output, m->from, m->to);
	return 0;
}
IPC_HANDLER(out_gap, on_out_gap)

static int
on_out_entry(
	struct ipc_peer *peer, struct ipc_msg *in, const struct msg_out_entry *m, struct err *err)
{
	struct job *job = peer->owner;

	(void)in, (void)err;
	if (job->ops->entry != NULL)
		job->ops->entry(job, m);
	return 0;
}
IPC_HANDLER(out_entry, on_out_entry)

static int
on_out_end(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_out_end *m, struct err *err)
{
	struct job *job = peer->owner;

	(void)in, (void)m, (void)err;
	peer->state = SESSION_ENDED;
	job->out_ended = true;
	maybe_done(job);
	return 0;
}
IPC_HANDLER(out_end, on_out_end)

static const struct ipc_row session_rows[] = {
	IPC_ROW(OUT, IN(SESSION_OPEN), on_out),
	IPC_ROW(OUT_GAP, IN(SESSION_OPEN), on_out_gap),
	IPC_ROW(OUT_ENTRY, IN(SESSION_OPEN), on_out_entry),
	IPC_ROW(OUT_END, IN(SESSION_OPEN), on_out_end),
};

static void
on_session_lost(struct ipc_peer *peer, const struct err *why)
{
	struct job *job = peer->owner;

	(void)why;
	job->peer = NULL;
	ipc_peer_close(peer);
	if (job->out_ended)
		return;
	job->out_ended = job->out_cut = true;
	maybe_done(job);
}

static void
on_session_drained(struct ipc_peer *peer)
{
	struct job *job = peer->owner;

	if (job->ops->drained != NULL)
		job->ops->drained(job);
}

static void
job_opened(struct job *job, const struct answer *answer)
{
	const struct msg_job_opened *m = answer->m;
	struct err err = {0};

	if (job->opened)
		return;
	job->opened = true;
	job->id = m->job;
	job->peer = ipc_peer_new(job->api->loop, ipc_msg_take(answer->in, 0), EDGE_API_RELAY,
		ROOM_API, session_rows, ARRAY_LEN(session_rows), job, on_session_lost, &err);
	if (job->peer == NULL)
		job->out_ended = job->out_cut = true;
	else
		job->peer->on_drained = on_session_drained;
	if (job->ops->opened != NULL)
		job->ops->opened(job);
}

/* Keeps the row: output may come after it. */
static void
job_row(struct job *job, const struct msg_job_row *m)
{
	struct msg_job_row *row = &job->row;

	*row = *m;
	buf_add_view(&job->texts, m->text);
	buf_add_view(&job->texts, m->cwd);
	if (buf_check(&job->texts) < 0) {
		row->text = row->cwd = view_of(NULL, 0);
	} else {
		row->text = view_of(job->texts.p, m->text.n);
		row->cwd = view_of(job->texts.p + m->text.n, m->cwd.n);
	}
	job->row_known = true;
	job->id = m->job;
	if (job->peer == NULL)
		job->out_ended = true; /* it ended without a session */
	maybe_done(job);
}

static void
on_answer(void *owner, const struct answer *answer)
{
	struct job *job = owner;

	if (job->doomed && answer->type == MSG_JOB_OPENED) {
		job->opened = true;
		job->id = ((const struct msg_job_opened *)answer->m)->job;
		job_signal(job, 0);
		job_free(job);
	} else if (job->doomed) {
		job_free(job);
	} else if (answer->type == MSG_JOB_OPENED)
		job_opened(job, answer);
	else if (answer->type == MSG_JOB_ROW)
		job_row(job, answer->m);
	else
		job->ops->refused(job, answer);
}

static struct job *
job_new(struct api *api, const struct job_ops *ops, void *owner, const struct caller *caller,
	const struct id *sandbox)
{
	struct job *job = calloc(1, sizeof(*job));

	if (job == NULL)
		return NULL;
	job->api = api;
	job->ops = ops;
	job->owner = owner;
	job->caller = *caller;
	local_hold(api, caller);
	job->sandbox = *sandbox;
	list_init(&job->asks);
	list_init(&job->orphans);
	buf_init(&job->texts, TEXTS_MAX);
	return job;
}

int
job_run(struct api *api, const struct msg_job_run *m, const struct job_ops *ops, void *owner,
	struct job **ret, struct err *err)
{
	struct job *job = job_new(api, ops, owner, &m->caller, &m->sandbox);
	int r;

	if (job == NULL)
		return err_set(err, -ERROR_INTERNAL, "no memory for a job");
	r = ASK(api, &job->asks, on_answer, job, err, JOB_RUN, job_run, *m);
	if (r < 0)
		job_free(job);
	else
		*ret = job;
	return r;
}

int
job_attach(struct api *api, const struct msg_job_attach *m, const struct job_ops *ops, void *owner,
	struct job **ret, struct err *err)
{
	struct job *job = job_new(api, ops, owner, &m->caller, &m->sandbox);
	int r;

	if (job == NULL)
		return err_set(err, -ERROR_INTERNAL, "no memory for a job");
	r = ASK(api, &job->asks, on_answer, job, err, JOB_ATTACH, job_attach, *m);
	if (r < 0)
		job_free(job);
	else
		*ret = job;
	return r;
}

void
job_free(struct job *job)
{
	if (job == NULL)
		return;
	local_drop(job->api, &job->caller);
	ask_forget_all(&job->asks);
	ask_forget_all(&job->orphans);
	ipc_peer_close(take_ptr(job->peer));
	buf_done(&job->texts);
	loop_free_later(job->api->loop, job);
}

static void
on_signalled(void *owner, const struct answer *answer)
{
	(void)owner, (void)answer; /* whoever waits for the job sees what came of it */
}

void
job_signal(struct job *job, uint32_t signal)
{
	struct err err = {0};

	if (!job->opened || job->row_known)
		return;
	if (ASK(job->api, &job->orphans, on_signalled, job, &err, JOB_KILL, job_kill,
		    {.caller = job->caller,
			    .sandbox = job->sandbox,
			    .job = job->id,
			    .signal = signal,
			    .revoked = job->revoked}) < 0)
		return; /* without an engine nothing can be ended now; the job has its timeout */
}

void
job_kill_free(struct job *job)
{
	if (job == NULL)
		return;
	job_signal(job, 0);
	if (job->opened || list_empty(&job->asks))
		job_free(job);
	else
		job->doomed = true;
}

void
job_revoked_free(struct job *job)
{
	if (job != NULL)
		job->revoked = true;
	job_kill_free(job);
}

void
job_send(struct job *job, struct view data)
{
	enum { PIECE = 32768 };

	while (job->peer != NULL && data.n > 0) {
		struct view piece = view_of(data.p, data.n > PIECE ? PIECE : data.n);

		IPC_SEND(job->peer, 0, IN, in, {.data = piece});
		data = view_skip(data, piece.n);
	}
}

void
job_send_end(struct job *job)
{
	if (job->peer != NULL)
		IPC_SEND(job->peer, 0, IN_END, in_end, {0});
}

void
job_resize(struct job *job, uint16_t rows, uint16_t columns)
{
	if (job->peer != NULL)
		IPC_SEND(job->peer, 0, IN_RESIZE, in_resize, {.rows = rows, .columns = columns});
}

size_t
job_backlog(const struct job *job)
{
	return job->peer == NULL ? 0 : job->peer->queued_bytes;
}

void
job_pause(struct job *job, bool paused)
{
	if (job->peer != NULL)
		ipc_peer_pause(job->peer, paused);
}
