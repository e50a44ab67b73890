/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demilune-engine: desired state, policy, limits and the audit. Started by the supervisor with the
 * descriptors of proto/fds.def; no arguments. Exit: 0 after STOPPED, 2 the supervisor was lost or broke the
 * protocol, 3 the store or a descriptor cannot be used, 4 it cannot be confined.
 */
#include "engine/confine.h"
#include "engine/expiry.h"
#include "engine/input.h"
#include "engine/life.h"
#include "engine/limit.h"
#include "engine/limits.h"
#include "engine/reconcile.h"
#include "engine/result.h"
#include "engine/revision.h"
#include "engine/said.h"
#include "engine/serve.h"
#include "engine/template.h"
#include "engine/tree.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static void
on_tick(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop, (void)events;
	life_tick(container_of(w, struct engine, tick));
}

static void
on_slice(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop, (void)events;
	uploads_slice(container_of(w, struct engine, slice));
}

static void
on_actions(struct ev_loop *loop, ev_timer *w, int events)
{
	struct engine *e = container_of(w, struct engine, actions);

	(void)events;
	broker_tick(e, clock_mono_ms());
	if (!expiry_tick(e) && list_empty(&e->broker.waits))
		ev_timer_stop(loop, w);
}

static void
engine_init(struct engine *e)
{
	*e = (struct engine){.loop = loop_new(),
		.state_fd = FD_ENGINE_STATE,
		.engine_fd = -1,
		.inputs_fd = -1,
		.templates_fd = -1};
	list_init(&e->sandboxes);
	for (size_t i = 0; i < SANDBOX_BUCKETS; i++)
		list_init(&e->buckets[i]);
	list_init(&e->templates);
	list_init(&e->rates);
	list_init(&e->uploads);
	ev_timer_init(&e->tick, on_tick, 0, (double)LIMIT_TICK_MS / 1000);
	list_init(&e->broker.waits);
	ev_timer_init(&e->actions, on_actions, 0, (double)LIMIT_TICK_MS / 1000);
	outbox_init(&e->outbox, e);
	checkpoint_init(e);
	list_init(&e->calls);
	list_init(&e->revisions);
	said_init(e);
	ev_timer_init(&e->lookup, on_lookups, 0, 0);
	ev_timer_init(&e->again, on_executions_again, 0, 0);
	ev_timer_init(&e->slice, on_slice, 0, 0.0005);
}

/* The working directory is engine/ of the state; SQLite has only relative names. */
static int
open_state(struct engine *e, struct err *err)
{
	e->engine_fd = openat(
		e->state_fd, "engine", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (e->engine_fd < 0)
		return err_errno(err, "open engine/ of the state directory");
	if (fchdir(e->engine_fd) < 0)
		return err_errno(err, "enter engine/ of the state directory");
	return 0;
}

static int
open_catalogue(struct engine *e, struct err *err)
{
	int r = catalogue_read(FD_ENGINE_CATALOGUE, &e->catalogue, err);

	if (r < 0)
		return err_context(err, "the catalogue of operations");
	(void)close(FD_ENGINE_CATALOGUE); /* all of it is in memory */
	return 0;
}

int
main(int argc, char **argv)
{
	static struct engine engine;
	struct err err = {0};

	(void)argv;
	log_name("engine");
	if (argc != 1)
		log_exit(3, "no arguments; the supervisor starts this program");
	/* A closed peer and a file that may not grow are errors of their calls. */
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
		log_exit(3, "cannot ignore SIGPIPE and SIGXFSZ");
	(void)umask(077);
	engine_init(&engine);
	if (open_state(&engine, &err) < 0)
		log_exit(3, "%s", err.text);
	if (confine(engine.state_fd, engine.engine_fd, &err) < 0)
		log_exit(4, "cannot be confined: %s", err.text);
	if (open_catalogue(&engine, &err) < 0)
		log_exit(3, "%s", err.text);
	if (revisions_open(&engine, FD_ENGINE_POLICIES, &err) < 0)
		log_exit(3, "the policies: %s", err.text);
	if (serve_supervisor(&engine, FD_ENGINE_SUPERVISOR, &err) < 0 ||
		serve_api(&engine, FD_ENGINE_API, &err) < 0 ||
		serve_broker(&engine, FD_ENGINE_BROKER, &err) < 0)
		log_exit(3, "%s", err.text);
	(void)ev_run(engine.loop, 0);
	store_close(engine.store);
	tree_close(engine.tree);
	catalogue_done(&engine.catalogue);
	revisions_done(&engine);
	return 0;
}
