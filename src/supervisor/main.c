/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demilune-supervisor: root, single-threaded. Command line, configuration, host, loop, end. No policy: what a sandbox
 * may be is the engine's, how it is built is sandbox.c's.
 */
#include "lib/base/clock.h"
#include "lib/base/hex.h"
#include "lib/base/log.h"
#include "lib/loop/loop.h"
#include "supervisor/catalogue.h"
#include "supervisor/confine.h"
#include "supervisor/edges.h"
#include "supervisor/limits.h"
#include "supervisor/options.h"
#include "supervisor/serve.h"
#include "supervisor/spare.h"
#include "supervisor/start.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>

enum { EXIT_USAGE = 2, EXIT_CONFIG = 3 };

/* ---- the end ---- */

void
stop_check(struct supervisor *sv)
{
	if (sv->sandboxes.n == 0 && (sv->engine_stopped || sv->engine_peer == NULL) &&
		rooms_last(sv))
		ev_break(sv->loop, EVBREAK_ALL);
}

/* Looks again after each turn: the last sandbox may be a spare, of which nobody is told. */
static void
on_stop_tick(struct ev_loop *loop, ev_timer *w, int events)
{
	struct supervisor *sv = container_of(w, struct supervisor, stop_timer);

	(void)events;
	stop_check(sv);
	if (clock_mono_ms() - sv->stop_ms < LIMIT_STOP_MS || !rooms_last(sv))
		return;
	log_line("the end is not waited for any longer: %zu sandboxes, the engine %s",
		sv->sandboxes.n, sv->engine_stopped ? "is done" : "is not done");
	ev_break(loop, EVBREAK_ALL);
}

static void
on_term(struct ev_loop *loop, ev_signal *w, int events)
{
	struct supervisor *sv = w->data;

	(void)events;
	if (sv->stopping)
		return;
	log_line("signal %d: stopping", w->signum);
	sv->stopping = true;
	rooms_stopping(sv);
	sv->stop_ms = clock_mono_ms();
	ev_timer_init(&sv->stop_timer, on_stop_tick, 0.005, 0.005);
	ev_timer_start(loop, &sv->stop_timer);
	serve_stopping(sv);
	sandboxes_stop(&sv->sandboxes);
	stop_check(sv);
}

static void
on_hangup(struct ev_loop *loop, ev_signal *w, int events)
{
	(void)loop, (void)events;
	log_line("SIGHUP: operations and policies are compiled anew");
	catalogue_reload(w->data);
}

/* ---- the beginning ---- */

static int
sandboxes_start(struct supervisor *sv, struct err *err)
{
	templates_init(&sv->templates, sv->loop, sv->stage);
	sv->templates.dir = take_fd(&sv->templates_dir);
	sv->templates.on_done = serve_template_done;
	sv->templates.owner = sv;
	sv->sandboxes.loop = sv->loop;
	sv->sandboxes.settings = &sv->settings;
	sv->sandboxes.cgroups = &sv->cgroups;
	sv->sandboxes.programs = &sv->programs;
	sv->sandboxes.slots = &sv->slots;
	sv->sandboxes.journal = &sv->journal;
	sv->sandboxes.templates = &sv->templates;
	sv->sandboxes.stage = sv->stage;
	(void)snprintf(sv->sandboxes.stage_path, sizeof(sv->sandboxes.stage_path), "%s/stage",
		sv->settings.run_dir);
	sv->sandboxes.tells = &serve_tells;
	sv->sandboxes.policies = &sv->policies;
	sv->sandboxes.ipv6 = access("/proc/net/if_inet6", F_OK) == 0;
	sv->sandboxes.owner = sv;
	/* Names never meet those of an earlier run whose remains could not be removed. */
	memcpy(&sv->sandboxes.serial, sv->boot, 4);
	return sandboxes_init(&sv->sandboxes, err);
}

static void
signals_watch(struct supervisor *sv)
{
	(void)signal(SIGPIPE, SIG_IGN); /* cannot fail */
	ev_signal_init(&sv->term, on_term, SIGTERM);
	ev_signal_init(&sv->interrupt, on_term, SIGINT);
	ev_signal_init(&sv->hangup, on_hangup, SIGHUP);
	sv->term.data = sv->interrupt.data = sv->hangup.data = sv;
	ev_signal_start(sv->loop, &sv->term);
	ev_signal_start(sv->loop, &sv->interrupt);
	ev_signal_start(sv->loop, &sv->hangup);
}

static void
run(struct supervisor *sv)
{
	struct err err = {0};
	bool clean;

	sv->loop = loop_new();
	if (sandboxes_start(sv, &err) < 0 || confine(&err) < 0)
		log_exit(1, "%s", err.text);
	signals_watch(sv);
	edges_init(sv);
	rooms_init(sv);
	rooms_begin(sv);
	spares_refill(&sv->sandboxes, 0);
	log_line("up: control groups version %d, at most %u sandboxes, state in %s",
		cgroups_version(&sv->cgroups), sv->settings.max_sandboxes, sv->settings.state_dir);
	ev_run(sv->loop, 0);

	rooms_end(sv);
	catalogue_end(sv);
	clean = sv->sandboxes.n == 0;
	sandboxes_done(&sv->sandboxes);
	templates_done(&sv->templates);
	list_each (e, &sv->ended, struct ended, link)
		free(e);
	ev_signal_stop(sv->loop, &sv->term);
	ev_signal_stop(sv->loop, &sv->interrupt);
	ev_signal_stop(sv->loop, &sv->hangup);
	ev_timer_stop(sv->loop, &sv->stop_timer);
	ev_timer_stop(sv->loop, &sv->edges_timer);
	loop_free(sv->loop);
	start_undo(sv);
	log_line("down, %s", clean ? "nothing is left" : "the next start takes down what is left");
}

static void
supervisor_init(struct supervisor *sv)
{
	*sv = (struct supervisor){.state = -1,
		.run = -1,
		.stage = -1,
		.templates_dir = -1,
		.lock = -1,
		.run_lock = -1,
		.local = -1,
		.operations = -1,
		.origins = -1,
		.empty = -1,
		.broker_state = -1,
		.trust = -1};
	catalogue_init(sv);
	sv->journal.fd = -1;
	sv->sandboxes.agent = sv->sandboxes.watch = -1;
	list_init(&sv->ended);
	list_init(&sv->sandboxes.list);
	must(getrandom(sv->boot, sizeof(sv->boot), 0) == (ssize_t)sizeof(sv->boot));
	hex_encode(sv->boot, 6, sv->tag);
}

/* What was made is undone when a step fails. */
static void
start(struct supervisor *sv)
{
	struct err err = {0};
	int status = 1, r = start_dirs(sv, &err);

	if (r == 0) {
		r = catalogue_start(sv, &err);
		status = r < 0 ? EXIT_CONFIG : 1;
	}
	if (r == 0)
		r = start_host(sv, &err);
	if (r < 0) {
		start_undo(sv);
		log_exit(status, "%s", err.text);
	}
}

int
main(int argc, char **argv)
{
	static struct supervisor sv;
	struct options options;
	struct err err = {0};

	log_name("supervisor");
	if (options_read(argc, argv, &options, &err) < 0)
		log_exit(EXIT_USAGE, "%s", err.text);
	if (options.help) {
		options_print();
		return 0;
	}
	if (geteuid() != 0)
		log_exit(EXIT_USAGE,
			"root is needed: namespaces, mounts and control groups belong to it");
	(void)umask(022);
	supervisor_init(&sv);
	if (programs_find(&sv.programs, options.libexec, &err) < 0)
		log_exit(1, "%s", err.text);
	if (start_config(&sv, options.config, &err) < 0)
		log_exit(EXIT_CONFIG, "%s", err.text);
	start(&sv);
	run(&sv);
	programs_done(&sv.programs);
	return 0;
}
