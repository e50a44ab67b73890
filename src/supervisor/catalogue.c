/* SPDX-License-Identifier: Apache-2.0 */
/* The directories of operations and policies, compiled; see catalogue.h. Called by main.c. */
#include "supervisor/catalogue.h"

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "supervisor/start.h"

#include <errno.h>
#include <fcntl.h>

static const enum compile_kind kinds[RELOADS] = {
	[RELOAD_OPERATIONS] = COMPILE_OPERATIONS, [RELOAD_POLICIES] = COMPILE_POLICIES};

static const char *
directory_of(const struct supervisor *sv, size_t i)
{
	return i == RELOAD_POLICIES ? sv->settings.policies_dir : sv->settings.operations_dir;
}

/* What stands in there decides what can be done and reached at all, so only root writes to it. One that is not there is empty. */
static int
directory_open(struct supervisor *sv, size_t i, struct err *err)
{
	int fd = root_dir_open(directory_of(sv, i), err);

	if (fd == -ENOENT)
		fd = fcntl(sv->empty, F_DUPFD_CLOEXEC, 0);
	return fd;
}

/* All at a time: one waits for the other's end only. */
static int
reload_begin(struct supervisor *sv, struct err *err)
{
	for (size_t i = 0; i < RELOADS; i++) {
		auto_fd int input = directory_open(sv, i, err);
		int r = input;

		sv->reload[i].done = false;
		if (input >= 0)
			r = compile_begin(&sv->reload[i].compile, &sv->programs,
				directory_of(sv, i), kinds[i], input, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static void
reload_drop(struct supervisor *sv)
{
	for (size_t i = 0; i < RELOADS; i++)
		compile_end(&sv->reload[i].compile);
}

static void
take_over(struct supervisor *sv)
{
	struct compile *operations = &sv->reload[RELOAD_OPERATIONS].compile;
	struct compile *policies = &sv->reload[RELOAD_POLICIES].compile;

	fd_close_kept(&sv->operations);
	fd_close_kept(&sv->origins);
	revisions_done(&sv->policies);
	sv->operations = take_fd(&operations->operations);
	sv->origins = take_fd(&operations->origins);
	sv->policies = policies->policies;
	policies->policies = REVISIONS_NONE;
}

int
catalogue_start(struct supervisor *sv, struct err *err)
{
	int r = reload_begin(sv, err);

	for (size_t i = 0; r == 0 && i < RELOADS; i++)
		r = compile_wait(&sv->reload[i].compile, err);
	if (r == 0)
		take_over(sv);
	reload_drop(sv);
	return r;
}

/* ---- in the loop ---- */

static void
reload_unwatch(struct supervisor *sv)
{
	for (size_t i = 0; i < RELOADS; i++)
		ev_io_stop(sv->loop, &sv->reload[i].said);
	ev_timer_stop(sv->loop, &sv->reload_late);
}

static void
reload_end(struct supervisor *sv, int r, const struct err *err)
{
	reload_unwatch(sv);
	if (r < 0) {
		log_line("operations and policies stay as they are: %s", err->text);
	} else {
		take_over(sv);
		log_line("%u operations, %u origins and %zu policies from now on",
			sv->reload[RELOAD_OPERATIONS].compile.catalogue.operations,
			sv->reload[RELOAD_OPERATIONS].compile.catalogue.origins, sv->policies.n);
	}
	reload_drop(sv);
	if (r >= 0 && !sv->stopping)
		rooms_renew(sv);
}

static void
on_said(struct ev_loop *loop, ev_io *w, int events)
{
	struct reload *reload = container_of(w, struct reload, said);
	struct supervisor *sv = reload->owner;
	struct err err = {0};
	int r = compile_step(&reload->compile, &err);

	(void)events;
	if (r == 0)
		return;
	ev_io_stop(loop, w);
	reload->done = true;
	for (size_t i = 0; r > 0 && i < RELOADS; i++)
		if (!sv->reload[i].done)
			return;
	reload_end(sv, r, &err);
}

static void
on_late(struct ev_loop *loop, ev_timer *w, int events)
{
	struct supervisor *sv = container_of(w, struct supervisor, reload_late);
	struct err err;

	(void)loop, (void)events;
	reload_end(sv,
		err_set(&err, -ETIMEDOUT, "the configuration compiler does not come to an end"),
		&err);
}

void
catalogue_reload(struct supervisor *sv)
{
	struct err err = {0};
	uint64_t now = clock_mono_ms();
	int r;

	if (sv->stopping)
		return;
	reload_unwatch(sv);
	reload_drop(sv); /* what one that runs has read may be old */
	r = reload_begin(sv, &err);
	if (r < 0) {
		reload_end(sv, r, &err);
		return;
	}
	for (size_t i = 0; i < RELOADS; i++) {
		struct reload *reload = &sv->reload[i];

		ev_io_init(&reload->said, on_said, reload->compile.fd, EV_READ);
		ev_io_start(sv->loop, &reload->said);
	}
	ev_timer_init(&sv->reload_late, on_late,
		(double)(sv->reload[0].compile.until_ms - now) / 1000, 0.0);
	ev_timer_start(sv->loop, &sv->reload_late);
}

void
catalogue_init(struct supervisor *sv)
{
	for (size_t i = 0; i < RELOADS; i++) {
		compile_init(&sv->reload[i].compile);
		ev_init(&sv->reload[i].said, on_said);
		sv->reload[i].owner = sv;
	}
	ev_init(&sv->reload_late, on_late);
	sv->policies = REVISIONS_NONE;
}

void
catalogue_end(struct supervisor *sv)
{
	reload_unwatch(sv);
	reload_drop(sv);
	fd_close_kept(&sv->operations);
	fd_close_kept(&sv->origins);
	revisions_done(&sv->policies);
}
