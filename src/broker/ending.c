/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGTERM: the supervisor has other operations, or ends. The engine's edge is closed, so that it sees a broker that is away and leaves what is
 * approved for the next one; what was not sent never is; what was sent gets its end in the ledger. A deadline bounds it.
 */
#include "broker/work.h"

#include <signal.h>

static bool
is_sent(const struct work *w)
{
	return w->kind == WORK_EXECUTE && (w->phase == PHASE_SENT || w->phase == PHASE_WAITING ||
						  w->phase == PHASE_RECONNECTING);
}

static void
on_late(struct ev_loop *loop, ev_timer *t, int events)
{
	struct broker *b = container_of(t, struct broker, end);

	(void)events;
	list_each (w, &b->works, struct work, link)
		if (is_sent(w))
			broker_log(b, "%s: its end is not waited for any longer", w->execution);
	ev_break(loop, EVBREAK_ALL);
}

static void
on_term(struct ev_loop *loop, ev_signal *s, int events)
{
	struct broker *b = container_of(s, struct broker, term);

	(void)events;
	ipc_peer_close(b->engine);
	b->engine = NULL;
	ev_timer_start(loop, &b->end);
	ending_check(b);
}

void
ending_init(struct broker *b)
{
	ev_timer_init(&b->end, on_late, (double)LIMIT_END_MS / 1000.0, 0);
	ev_signal_init(&b->term, on_term, SIGTERM);
	ev_signal_start(b->loop, &b->term);
}

bool
ending(const struct broker *b)
{
	return ev_is_active((uintptr_t)&b->end);
}

void
ending_check(struct broker *b)
{
	if (!ending(b))
		return;
	list_each (w, &b->works, struct work, link)
		if (is_sent(w))
			return;
	ev_break(b->loop, EVBREAK_ALL);
}
