/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the engine; see ask.h. */
#include "ask.h"

#include "lib/loop/loop.h"

#include <errno.h>

struct ask_info {
	enum msg_type question, row, last; /* row == question: none */
	double deadline_s;
};

#define MSG_NONE MSG_MAX
static const struct ask_info ask_infos[] = {
#define ASK_ROW(question, row, last, ms) {MSG_##question, MSG_##row, MSG_##last, LIMIT_##ms / 1e3},
#undef ASK
#define ASK(question, name, row, last, ms) ASK_ROW(question, row, last, ms)
#include "ask.def"
#undef ASK
};

static const struct {
	enum msg_type question, row;
} ask_also[] = {
#define ALSO(question, row) {MSG_##question, MSG_##row},
#define ASK(question, name, row, last, ms)
#include "ask.def"
#undef ASK
};

static const struct ask_info *
ask_info(enum msg_type question)
{
	for (size_t i = 0; i < ARRAY_LEN(ask_infos); i++)
		if (ask_infos[i].question == question)
			return &ask_infos[i];
	must(false);
}

static bool
ask_row_fits(enum msg_type question, enum msg_type row)
{
	if (ask_info(question)->row == row)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(ask_also); i++)
		if (ask_also[i].question == question && ask_also[i].row == row)
			return true;
	return false;
}

static void
ask_free(struct ask *ask)
{
	ev_timer_stop(ask->api->loop, &ask->deadline);
	list_remove(&ask->link);
	list_remove(&ask->of_owner);
	loop_free_later(ask->api->loop, ask);
}

/* Hands on an answer; the ask is gone before the function runs when it is the last one. */
static void
ask_tell(struct ask *ask, const struct answer *answer)
{
	ask_fn *fn = ask->fn;
	void *owner = ask->owner;

	ev_timer_stop(ask->api->loop, &ask->deadline);
	if (answer->last)
		ask_free(ask);
	fn(owner, answer);
}

static void
ask_give_up(struct ask *ask, const char *text)
{
	struct msg_refused m = {.error = ERROR_UNAVAILABLE, .text = view_str(text)};

	ask_tell(ask, &(struct answer){.type = MSG_REFUSED, .last = true, .m = &m});
}

static void
on_deadline(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop, (void)events;
	ask_give_up(container_of(w, struct ask, deadline),
		"the engine did not answer in time; whether it acted is not known, look before you "
		"repeat");
}

bool
ask_room(const struct api *api)
{
	return api->engine == NULL || api->engine->queued_bytes <= LIMIT_ASK_QUEUE_BYTES;
}

int
ask_send(struct api *api, enum msg_type question, const struct buf *body, struct link *owners,
	ask_fn *fn, void *owner, struct err *err)
{
	struct ask *ask;

	if (api->engine == NULL)
		return err_set(err, -ERROR_UNAVAILABLE,
			"the engine is being started; try again in a moment");
	if (api->engine->queued_bytes > LIMIT_ASK_QUEUE_MAX_BYTES)
		return err_set(err, -ERROR_UNAVAILABLE,
			"the engine has more to do than it takes; nothing was done, try again in a "
			"moment");
	ask = calloc(1, sizeof(*ask));
	if (ask == NULL || buf_check(body) < 0) {
		free(ask);
		return err_set(err, -ERROR_INTERNAL, "no memory for a question to the engine");
	}
	*ask = (struct ask){
		.api = api, .tag = api->next_tag++, .question = question, .fn = fn, .owner = owner};
	ev_timer_init(&ask->deadline, on_deadline, ask_info(question)->deadline_s, 0);
	ev_timer_start(api->loop, &ask->deadline);
	list_append(&api->asks, &ask->link);
	list_append(owners, &ask->of_owner);
	ipc_peer_send(api->engine, question, ask->tag, buf_view(body), NULL, 0);
	return 0;
}

void
ask_more(struct ask *ask, enum msg_type type, const struct buf *body)
{
	if (ask->api->engine != NULL && buf_check(body) == 0)
		ipc_peer_send(ask->api->engine, type, ask->tag, buf_view(body), NULL, 0);
}

void
ask_forget_all(struct link *owners)
{
	list_each (ask, owners, struct ask, of_owner)
		ask_free(ask);
}

int
ask_answered(struct api *api, struct ipc_msg *in, const void *m, struct err *err)
{
	if (in->tag == 0 || in->tag >= api->next_tag)
		return err_set(err, -EPROTO, "%s for a question that was not asked",
			msg_info[in->type].name);
	list_each (ask, &api->asks, struct ask, link) {
		const struct ask_info *info = ask_info(ask->question);
		bool last = in->type == MSG_REFUSED || in->type == info->last;

		if (ask->tag != in->tag)
			continue;
		if (!last && !ask_row_fits(ask->question, in->type))
			return err_set(err, -EPROTO, "%s as answer to %s", msg_info[in->type].name,
				msg_info[ask->question].name);
		ask_tell(ask, &(struct answer){.type = in->type, .last = last, .m = m, .in = in});
		return 0;
	}
	return 0; /* it was given up */
}

void
ask_engine_lost(struct api *api)
{
	/* One at a time: an answer may end its owner and with it other questions. */
	while (!list_empty(&api->asks))
		ask_give_up(container_of(api->asks.next, struct ask, link),
			"the engine was restarted during the request; look whether it took effect "
			"before you repeat it");
}
