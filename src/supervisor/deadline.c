/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines; see deadline.h. */
#include "supervisor/deadline.h"

#include <sys/timerfd.h>
#include <time.h>

uint64_t
deadline_now_ms(void)
{
	struct timespec ts;

	must(clock_gettime(CLOCK_BOOTTIME, &ts) == 0);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void
on_readable(struct ev_loop *loop, ev_io *w, int events)
{
	struct deadline *d = container_of(w, struct deadline, due);
	uint64_t times;

	(void)loop, (void)events;
	if (read(d->fd, &times, sizeof(times)) ==
		(ssize_t)sizeof(times)) /* else: set anew meanwhile */
		d->on_due(d->owner);
}

int
deadline_init(struct deadline *d, struct ev_loop *loop, void (*on_due)(void *), void *owner,
	struct err *err)
{
	*d = (struct deadline){.on_due = on_due, .owner = owner};
	d->fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (d->fd < 0)
		return err_errno(err, "a timer");
	ev_io_init(&d->due, on_readable, d->fd, EV_READ);
	ev_io_start(loop, &d->due);
	return 0;
}

void
deadline_done(struct deadline *d, struct ev_loop *loop)
{
	ev_io_stop(loop, &d->due);
	(void)close(take_fd(&d->fd)); /* only a timer */
}

void
deadline_set(struct deadline *d, uint64_t at_ms)
{
	struct itimerspec at = {0};

	if (at_ms != UINT64_MAX) {
		at.it_value.tv_sec = (time_t)(at_ms / 1000);
		at.it_value.tv_nsec = (long)(at_ms % 1000) * 1000000 +
				      1; /* 0 would switch it off */
	}
	must(timerfd_settime(d->fd, TFD_TIMER_ABSTIME, &at, NULL) == 0);
}
