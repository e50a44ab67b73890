/* SPDX-License-Identifier: Apache-2.0 */
/* The message tables of the relay towards engine and supervisor; the sessions' is in session.c. */
#include "job.h"

#include "lib/base/log.h"

#include <errno.h>

static struct relay *
relay_of(const struct ipc_peer *peer)
{
	return peer->owner;
}

static int
on_job_start(
	struct ipc_peer *peer, struct ipc_msg *in, const struct msg_job_start *m, struct err *err)
{
	(void)in;
	return job_start(relay_of(peer), m, err);
}

static int
on_job_session(
	struct ipc_peer *peer, struct ipc_msg *in, const struct msg_job_session *m, struct err *err)
{
	struct job *j = job_find(relay_of(peer), &m->job);

	(void)err;
	if (j != NULL)
		session_attach(j, ipc_msg_take(in, 0), m->stdout_from, m->stderr_from);
	return 0; /* forgotten: the caller sees its end closed without OUT_END */
}

static int
on_job_feed(
	struct ipc_peer *peer, struct ipc_msg *in, const struct msg_job_feed *m, struct err *err)
{
	struct job *j = job_find(relay_of(peer), &m->job);

	if (j == NULL || !job_runs(j))
		return 0; /* it crossed the end */
	return job_feed(j, ipc_msg_take(in, 0), err);
}

static int
on_job_signal(
	struct ipc_peer *peer, struct ipc_msg *in, const struct msg_job_signal *m, struct err *err)
{
	struct job *j = job_find(relay_of(peer), &m->job);

	(void)in;
	if (m->signal >= 64)
		return err_set(err, -EPROTO, "JOB_SIGNAL %u", m->signal);
	if (j != NULL)
		job_signal(j, m->signal);
	return 0;
}

static int
on_job_recorded(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_job_recorded *m,
	struct err *err)
{
	struct job *j = job_find(relay_of(peer), &m->job);

	(void)in, (void)err;
	if (j != NULL)
		job_recorded(j);
	return 0;
}

static int
on_relay_freeze(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_relay_freeze *m,
	struct err *err)
{
	struct relay *r = relay_of(peer);

	(void)in, (void)err;
	if (r->frozen && !m->frozen) {
		if (ev_is_active(&r->ping))
			ev_timer_again(r->loop, &r->ping);
		jobs_thaw(r);
	}
	r->frozen = m->frozen;
	return 0;
}

/* A new engine may say it again; it is the same sandbox, and the same gateway. */
static int
on_relay_trust(
	struct ipc_peer *peer, struct ipc_msg *in, const struct msg_relay_trust *m, struct err *err)
{
	struct relay *r = relay_of(peer);

	(void)in;
	if (r->trusts || m->certificate.n == 0)
		return 0; /* without an authority programs trust what their image does */
	if (r->last_stream != 0)
		return err_set(err, -EPROTO, "RELAY_TRUST after the first job");
	if (m->keystore.n == 0)
		return err_set(err, -EPROTO, "RELAY_TRUST without a key store");
	r->trusts = true;
	CHANNEL_PUT(&r->out, 0, TRUST, trust,
		{.certificate = m->certificate,
			.keystore = m->keystore,
			.system_roots = m->system_roots});
	guest_flush(r);
	return 0;
}

static int
on_proposed(
	struct ipc_peer *peer, struct ipc_msg *in, const struct msg_proposed *m, struct err *err)
{
	return propose_answered(relay_of(peer), in->tag, m, err);
}

IPC_HANDLER(job_start, on_job_start)
IPC_HANDLER(job_session, on_job_session)
IPC_HANDLER(job_feed, on_job_feed)
IPC_HANDLER(job_signal, on_job_signal)
IPC_HANDLER(job_recorded, on_job_recorded)
IPC_HANDLER(relay_freeze, on_relay_freeze)
IPC_HANDLER(relay_trust, on_relay_trust)
IPC_HANDLER(proposed, on_proposed)

static const struct ipc_row engine_rows[] = {
	IPC_ROW(JOB_START, IN(RELAY_LIVE), on_job_start),
	IPC_ROW(JOB_SESSION, IN(RELAY_LIVE), on_job_session),
	IPC_ROW(JOB_FEED, IN(RELAY_LIVE), on_job_feed),
	IPC_ROW(JOB_SIGNAL, IN(RELAY_LIVE), on_job_signal),
	IPC_ROW(JOB_RECORDED, IN(RELAY_LIVE) | IN(RELAY_LOST), on_job_recorded),
	IPC_ROW(RELAY_FREEZE, IN(RELAY_WAITING) | IN(RELAY_LIVE), on_relay_freeze),
	IPC_ROW(RELAY_TRUST, IN(RELAY_WAITING) | IN(RELAY_LIVE), on_relay_trust),
	IPC_ROW(PROPOSED, IN(RELAY_LIVE), on_proposed),
};

static void
on_engine_lost(struct ipc_peer *peer, const struct err *why)
{
	struct relay *r = relay_of(peer);

	/* One that is gone: the supervisor tells of it, when that was not to be. */
	if (why->code != -EPIPE && why->code != -ECONNRESET)
		log_line("engine: %s", why->text);
	ipc_peer_close(peer);
	r->engine = NULL;
	propose_engine_lost(r);
	if (r->state == RELAY_LOST)
		ev_break(r->loop, EVBREAK_ALL);
	/* Else jobs go on: the supervisor brings a new edge, or closes its own. */
}

struct ipc_peer *
serve_engine(struct relay *r, int fd, struct err *err)
{
	struct ipc_peer *peer = ipc_peer_new(r->loop, fd, EDGE_RELAY_ENGINE, ROOM_RELAY,
		engine_rows, ARRAY_LEN(engine_rows), r, on_engine_lost, err);

	if (peer != NULL)
		peer->state = r->state;
	return peer;
}

/* The new engine hears of all that runs, and again of every end that its predecessor did not record. */
static int
on_engine_edge(
	struct ipc_peer *peer, struct ipc_msg *in, const struct msg_engine_edge *m, struct err *err)
{
	struct relay *r = relay_of(peer);

	(void)m;
	ipc_peer_close(r->engine);
	propose_engine_lost(r);
	r->engine = serve_engine(r, ipc_msg_take(in, 0), err);
	if (r->engine == NULL)
		return err->code;
	list_each (j, &r->jobs, struct job, link)
		if (job_runs(j))
			IPC_SEND(r->engine, 0, RELAY_JOB, relay_job, {.job = j->id});
	IPC_SEND(r->engine, 0, RELAY_JOBS_END, relay_jobs_end, {0});
	list_each (j, &r->jobs, struct job, link)
		if (j->state == JOB_ENDED)
			job_tell_end(j);
	return 0;
}

/* The agent may have been faster than this message. */
static int
on_agent_starts(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_agent_starts *m,
	struct err *err)
{
	(void)in, (void)m, (void)err;
	if (relay_of(peer)->state == RELAY_WAITING)
		guest_due(relay_of(peer));
	return 0;
}

IPC_HANDLER(engine_edge, on_engine_edge)
IPC_HANDLER(agent_starts, on_agent_starts)

static const struct ipc_row supervisor_rows[] = {
	IPC_ROW(AGENT_STARTS, IN(RELAY_WAITING) | IN(RELAY_LIVE), on_agent_starts),
	IPC_ROW(ENGINE_EDGE, IN(RELAY_WAITING) | IN(RELAY_LIVE), on_engine_edge),
};

static void
on_supervisor_lost(struct ipc_peer *peer, const struct err *why)
{
	struct relay *r = relay_of(peer);

	(void)why; /* nothing survives the supervisor */
	ipc_peer_close(peer);
	r->supervisor = NULL;
	ev_break(r->loop, EVBREAK_ALL);
}

struct ipc_peer *
serve_supervisor(struct relay *r, int fd, struct err *err)
{
	return ipc_peer_new(r->loop, fd, EDGE_SUPERVISOR_RELAY, ROOM_RELAY, supervisor_rows,
		ARRAY_LEN(supervisor_rows), r, on_supervisor_lost, err);
}
