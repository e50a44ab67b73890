/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demilune-relay: one per sandbox. Descriptors as in proto/fds.def; no arguments, no environment. Ends when
 * the supervisor closes its edge, or the agent is lost.
 */
#include "confine.h"
#include "job.h"

#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/json/parse.h"
#include "lib/loop/loop.h"

#include <malloc.h>
#include <signal.h>

static void
on_sweep(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop, (void)events;
	jobs_sweep(container_of(w, struct relay, sweep));
}

static int
relay_init(struct relay *r, struct err *err)
{
	if (fd_set_nonblock(FD_RELAY_CHANNEL, err) < 0 ||
		fd_set_cloexec(FD_RELAY_CHANNEL, true, err) < 0)
		return err->code;
	r->channel = FD_RELAY_CHANNEL;
	r->loop = loop_new();
	r->state = RELAY_WAITING;
	list_init(&r->jobs);
	channel_in_init(&r->in, true);
	channel_out_init(&r->out, RELAY_OUT_MAX_BYTES);
	r->budget = (struct store_budget){
		.max = RELAY_MEMORY_BYTES, .make_room = jobs_forget_oldest, .owner = r};
	ev_init(&r->sweep, on_sweep);
	r->sweep.repeat = (double)RELAY_SWEEP_MS / 1000.0;
	r->engine = serve_engine(r, FD_RELAY_ENGINE, err);
	if (r->engine == NULL)
		return err->code;
	r->supervisor = serve_supervisor(r, FD_RELAY_SUPERVISOR, err);
	if (r->supervisor == NULL)
		return err->code;
	guest_start(r);
	return 0;
}

int
main(void)
{
	static struct relay relay;
	struct err err = {0};

	log_name("relay");
	/* Kept output goes back to the kernel when it is forgotten. */
	(void)mallopt(M_MMAP_THRESHOLD, 65536);
	(void)mallopt(M_TRIM_THRESHOLD, 65536);
	(void)signal(SIGPIPE, SIG_IGN); /* a write to a closed channel is an error like others */
	if (fd_close_from(FD_RELAY_SUPERVISOR + 1, &err) < 0 || json_start(&err) < 0 ||
		confine(&err) < 0 || relay_init(&relay, &err) < 0)
		log_exit(EXIT_NO_START, "%s", err.text);
	ev_run(relay.loop, 0);
	return (int)relay.exit;
}
