/* SPDX-License-Identifier: Apache-2.0 */
/* Syncs and checkpoints; see durable.h. */
#include "engine/durable.h"

#include "engine/limits.h"
#include "lib/base/log.h"

#include <errno.h>
#include <unistd.h>

void
durable_sync(struct durable *d)
{
	if (!d->dirty)
		return;
	ev_timer_stop(d->loop, &d->group);
	/* After a failed sync the kernel may have dropped the pages: nothing can be promised. */
	if (fdatasync(d->wal_fd) < 0)
		log_exit(1, "the database cannot be synced to disk (errno %d); ending", errno);
	d->dirty = false;
}

static void
checkpoint(struct durable *d)
{
	int left = 0, done = 0;

	ev_timer_stop(d->loop, &d->quiet);
	/* A failure leaves the WAL as it is: nothing is lost, the next one tries again. */
	if (sqlite3_wal_checkpoint_v2(d->database, NULL, SQLITE_CHECKPOINT_PASSIVE, &left, &done) !=
		SQLITE_OK)
		log_line("checkpoint: %s", sqlite3_errmsg(d->database));
	else
		d->wal_pages = 0;
}

static void
on_group(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop, (void)events;
	durable_sync(container_of(w, struct durable, group));
}

static void
on_quiet(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop, (void)events;
	checkpoint(container_of(w, struct durable, quiet));
}

static int
on_wal(void *arg, sqlite3 *database, const char *name, int pages)
{
	struct durable *d = arg;

	(void)database, (void)name;
	d->wal_pages = pages;
	return SQLITE_OK;
}

void
durable_init(struct durable *d, struct ev_loop *loop, sqlite3 *database, int wal_fd)
{
	*d = (struct durable){.loop = loop, .database = database, .wal_fd = wal_fd, .dirty = true};
	ev_timer_init(&d->group, on_group, (double)LIMIT_GROUP_MS / 1000, 0);
	ev_timer_init(&d->quiet, on_quiet, 0, (double)LIMIT_QUIET_MS / 1000);
	sqlite3_wal_hook(database, on_wal, d);
}

void
durable_done(struct durable *d)
{
	ev_timer_stop(d->loop, &d->group);
	ev_timer_stop(d->loop, &d->quiet);
	(void)close(d->wal_fd); /* it was only there to be synced */
}

void
durable_committed(struct durable *d)
{
	if (!d->dirty) {
		d->dirty = true;
		/* The time of this turn may be old; 50 ms count from now. */
		ev_now_update(d->loop);
		ev_timer_set(&d->group, (double)LIMIT_GROUP_MS / 1000, 0);
		ev_timer_start(d->loop, &d->group);
	}
	if (d->wal_pages >= (int)LIMIT_WAL_PAGES_MAX)
		checkpoint(d);
	else if (d->wal_pages >= (int)LIMIT_WAL_PAGES)
		ev_timer_again(d->loop, &d->quiet);
}
