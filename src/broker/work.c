/* SPDX-License-Identifier: Apache-2.0 */
/* See work.h. */
#include "broker/work.h"

#include "lib/loop/loop.h"

#include <errno.h>

_Static_assert(ARRAY_LEN(((struct work *)0)->ask) == 4, "LIMIT_WAITERS");

struct work *
work_new(struct broker *b, enum work_kind kind, struct ask ask)
{
	struct work *w;

	if (b->nworks >= LIMIT_WORKS) {
		tell_refused(b, ask, DENIAL_BROKER_UNAVAILABLE,
			"the broker is busy with as many things as it takes at a time; nothing was "
			"done");
		return NULL;
	}
	w = calloc(1, sizeof(*w));
	if (w == NULL) {
		tell_refused(b, ask, DENIAL_BROKER_UNAVAILABLE,
			"the broker has no memory for this; nothing was done");
		return NULL;
	}
	w->b = b;
	w->kind = kind;
	w->ask[w->nasks++] = ask;
	buf_init(&w->room, 4 * PROPOSAL_RECORD_MAX);
	buf_init(&w->question, PROPOSAL_RECORD_MAX);
	list_append(&b->works, &w->link);
	b->nworks++;
	return w;
}

void
work_free(struct work *w)
{
	ev_timer_stop(w->b->loop, &w->again);
	reading_free(&w->reading);
	call_free(w->call);
	buf_done(&w->room);
	buf_done(&w->question);
	free(w->bytes);
	list_remove(&w->link);
	w->b->nworks--;
	ending_check(w->b);
	loop_free_later(w->b->loop, w);
}

int
work_keep(struct work *w, struct view record, struct view approvals, struct err *err)
{
	w->bytes = malloc(record.n + approvals.n + 1);
	if (w->bytes == NULL)
		return err_set(err, -ENOMEM, "no memory for a record");
	if (record.n != 0)
		memcpy(w->bytes, record.p, record.n);
	if (approvals.n != 0)
		memcpy(w->bytes + record.n, approvals.p, approvals.n);
	w->record = view_of(w->bytes, record.n);
	w->approvals = view_of(w->bytes + record.n, approvals.n);
	return 0;
}

struct work *
work_of_execution(struct broker *b, const char *execution)
{
	list_each (w, &b->works, struct work, link)
		if (w->kind == WORK_EXECUTE && strcmp(w->execution, execution) == 0)
			return w;
	return NULL;
}

struct work *
work_of_proposal(struct broker *b, const char *proposal)
{
	list_each (w, &b->works, struct work, link)
		if (w->kind == WORK_EXECUTE && strcmp(w->proposal, proposal) == 0)
			return w;
	return NULL;
}

bool
work_join(struct work *w, struct ask ask)
{
	if (w->nasks == LIMIT_WAITERS)
		return false;
	w->ask[w->nasks++] = ask;
	return true;
}
