/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop; see loop.h. */
#include "lib/loop/loop.h"

/* What is due after this turn. */
struct due {
	struct due *next;
	void *p; /* owned */
};

/* Hangs on the loop as its user data. */
struct turn {
	ev_prepare end;
	struct due *due;
};

static void
on_turn_end(struct ev_loop *loop, ev_prepare *w, int events)
{
	struct turn *turn = container_of(w, struct turn, end);

	(void)loop, (void)events;
	while (turn->due != NULL) {
		struct due *due = turn->due;

		turn->due = due->next;
		free(due->p);
		free(due);
	}
}

struct ev_loop *
loop_new(void)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV | EVBACKEND_EPOLL);
	struct turn *turn = calloc(1, sizeof(*turn));

	must(loop != NULL && turn != NULL);
	ev_prepare_init(&turn->end, on_turn_end);
	ev_prepare_start(loop, &turn->end);
	ev_unref(loop); /* it alone does not keep the loop running */
	ev_set_userdata(loop, turn);
	return loop;
}

void
loop_free(struct ev_loop *loop)
{
	struct turn *turn = ev_userdata(loop);

	on_turn_end(loop, &turn->end, 0);
	ev_ref(loop);
	ev_prepare_stop(loop, &turn->end);
	free(turn);
	ev_loop_destroy(loop);
}

void
loop_free_later(struct ev_loop *loop, void *p)
{
	struct turn *turn = ev_userdata(loop);
	struct due *due = malloc(sizeof(*due));

	if (due == NULL)
		return; /* rather a leak than a stale pointer */
	*due = (struct due){.next = turn->due, .p = p};
	turn->due = due;
}
