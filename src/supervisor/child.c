/* SPDX-License-Identifier: Apache-2.0 */
/* The processes beside us; see child.h. What they say is none of this file's business. */
#include "supervisor/child.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "supervisor/limits.h"
#include "supervisor/program.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void
on_again(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop, (void)events;
	child_begin(container_of(w, struct child, again));
}

/* Longer each time, until it lived for a while. */
static void
again_later(struct child *c)
{
	bool steady = c->started_ms != 0 && clock_mono_ms() - c->started_ms > LIMIT_STEADY_MS;

	if (c->stopping)
		return;
	if (steady || c->pause_ms == 0)
		c->pause_ms = LIMIT_BACKOFF_MS;
	ev_timer_init(&c->again, on_again, (double)c->pause_ms / 1000, 0.0);
	ev_timer_start(c->loop, &c->again);
	c->pause_ms = c->pause_ms * 2 > LIMIT_BACKOFF_MAX_MS ? LIMIT_BACKOFF_MAX_MS
							     : c->pause_ms * 2;
}

static void
on_late(struct ev_loop *loop, ev_timer *w, int events)
{
	struct child *c = container_of(w, struct child, late);

	(void)loop, (void)events;
	log_line("the %s does not end, and is killed", c->noun);
	child_kill(c);
}

static void
on_died(struct ev_loop *loop, ev_io *w, int events)
{
	struct child *c = container_of(w, struct child, died);
	siginfo_t info = {0};

	(void)events;
	ev_io_stop(loop, w);
	ev_timer_stop(loop, &c->late);
	while (waitid(P_PIDFD, (id_t)c->pidfd, &info, WEXITED) < 0 && errno == EINTR)
		;
	(void)close(c->pidfd); /* waited for */
	c->pidfd = -1;
	if (!c->stopping)
		log_line("the %s ended with %s %d; it is started again", c->noun,
			info.si_code == CLD_EXITED ? "status" : "signal", info.si_status);
	c->ended(c);
	again_later(c);
}

void
child_init(struct child *c)
{
	c->pidfd = -1;
	ev_init(&c->died, on_died);
	ev_init(&c->again, on_again);
	ev_init(&c->late, on_late);
}

void
child_begin(struct child *c)
{
	struct err err = {0};

	if (c->stopping || c->pidfd >= 0)
		return;
	c->started_ms = clock_mono_ms();
	if (c->start(c, &err) < 0) {
		log_line("the %s cannot be started: %s", c->noun, err.text);
		c->ended(c);
		again_later(c);
		return;
	}
	ev_io_set(&c->died, c->pidfd, EV_READ);
	ev_io_start(c->loop, &c->died);
}

static void
child_signal(struct child *c, int signal)
{
	if (c->pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, c->pidfd, signal, NULL,
			0); /* it may have ended; on_died tells */
}

void
child_kill(struct child *c)
{
	child_signal(c, SIGKILL);
}

void
child_end(struct child *c)
{
	if (c->pidfd < 0 || ev_is_active(&c->late))
		return;
	child_signal(c, SIGTERM);
	ev_timer_set(&c->late, (double)c->end_ms / 1000, 0.0);
	ev_timer_start(c->loop, &c->late);
}

void
child_stop(struct child *c)
{
	c->stopping = true;
	ev_timer_stop(c->loop, &c->again);
	ev_timer_stop(c->loop, &c->late);
	ev_io_stop(c->loop, &c->died);
	program_end(&c->pidfd);
}
