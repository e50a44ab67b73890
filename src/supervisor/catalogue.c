/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of operations, compiled; see catalogue.h. Called by main.c. */
#include "supervisor/catalogue.h"

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "supervisor/start.h"

#include <errno.h>
#include <fcntl.h>

/* What stands in there decides what can be done at all, so only root writes to it. One that is not there is empty. */
static int
directory_open(struct supervisor *sv, struct err *err)
{
	int fd = root_dir_open(sv->settings.operations_dir, err);

	if (fd == -ENOENT)
		fd = fcntl(sv->empty, F_DUPFD_CLOEXEC, 0);
	return fd;
}

static int
reload_begin(struct supervisor *sv, struct err *err)
{
	auto_fd int input = directory_open(sv, err);

	if (input < 0)
		return err->code;
	return compile_begin(
		&sv->reload, &sv->programs, sv->settings.operations_dir, true, input, err);
}

static void
take_over(struct supervisor *sv)
{
	fd_close_kept(&sv->operations);
	fd_close_kept(&sv->origins);
	sv->operations = take_fd(&sv->reload.operations);
	sv->origins = take_fd(&sv->reload.origins);
}

int
catalogue_start(struct supervisor *sv, struct err *err)
{
	int r = reload_begin(sv, err);

	if (r == 0)
		r = compile_wait(&sv->reload, err);
	if (r == 0)
		take_over(sv);
	compile_end(&sv->reload);
	return r;
}

/* ---- in the loop ---- */

static void
reload_end(struct supervisor *sv, int r, const struct err *err)
{
	ev_io_stop(sv->loop, &sv->reload_said);
	ev_timer_stop(sv->loop, &sv->reload_late);
	if (r < 0) {
		log_line("the operations stay as they are: %s", err->text);
	} else {
		log_line("%u operations and %u origins from now on",
			sv->reload.catalogue.operations, sv->reload.catalogue.origins);
		take_over(sv);
	}
	compile_end(&sv->reload);
	if (r >= 0 && !sv->stopping)
		rooms_renew(sv);
}

static void
on_said(struct ev_loop *loop, ev_io *w, int events)
{
	struct supervisor *sv = container_of(w, struct supervisor, reload_said);
	struct err err = {0};
	int r = compile_step(&sv->reload, &err);

	(void)loop, (void)events;
	if (r != 0)
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
	if (sv->reload.fd >= 0) /* what it has read may be old */
		compile_end(&sv->reload);
	ev_io_stop(sv->loop, &sv->reload_said);
	ev_timer_stop(sv->loop, &sv->reload_late);
	r = reload_begin(sv, &err);
	if (r < 0) {
		reload_end(sv, r, &err);
		return;
	}
	ev_io_init(&sv->reload_said, on_said, sv->reload.fd, EV_READ);
	ev_timer_init(&sv->reload_late, on_late, (double)(sv->reload.until_ms - now) / 1000, 0.0);
	ev_io_start(sv->loop, &sv->reload_said);
	ev_timer_start(sv->loop, &sv->reload_late);
}

void
catalogue_end(struct supervisor *sv)
{
	ev_io_stop(sv->loop, &sv->reload_said);
	ev_timer_stop(sv->loop, &sv->reload_late);
	compile_end(&sv->reload);
	fd_close_kept(&sv->operations);
	fd_close_kept(&sv->origins);
}
