/* SPDX-License-Identifier: Apache-2.0 */
/* Callers at the local socket; see local.h. */
#include "local.h"

static void
tell(struct api *api, size_t at)
{
	if (api->engine == NULL)
		return; /* the next one is told of all */
	IPC_SEND_FD(api->engine, 0, LOCAL_OPEN, local_open, api->locals[at].fd,
		{.local = (uint16_t)at});
	api->locals[at].told = true;
}

int
local_caller(struct conn *c, struct caller *ret, struct err *err)
{
	struct local *l = c->api->locals;
	size_t at = 0;

	if (c->caller_at < 0) {
		while (at < LIMIT_LOCALS && l[at].refs > 0)
			at++;
		if (at == LIMIT_LOCALS)
			return refuse(err, UNAVAILABLE,
				"too many local callers at once; try again in a moment");
		l[at] = (struct local){.refs = 1, .uid = c->uid, .fd = c->fd};
		c->caller_at = (int)at;
		tell(c->api, at);
	}
	ret->kind = CALLER_KIND_LOCAL;
	ret->local = (uint16_t)c->caller_at;
	return 0;
}

void
local_hold(struct api *api, const struct caller *caller)
{
	if (caller->kind == CALLER_KIND_LOCAL)
		api->locals[caller->local].refs++;
}

void
local_drop(struct api *api, const struct caller *caller)
{
	struct local *l = &api->locals[caller->local];

	if (caller->kind != CALLER_KIND_LOCAL)
		return;
	must(l->refs > 0);
	l->refs--;
	if (l->refs == 0 && l->told && api->engine != NULL)
		IPC_SEND(api->engine, 0, LOCAL_CLOSE, local_close, {.local = caller->local});
}

void
local_leave(struct conn *c)
{
	const struct caller caller = {.kind = CALLER_KIND_LOCAL, .local = (uint16_t)c->caller_at};

	if (c->caller_at < 0)
		return;
	c->api->locals[c->caller_at].fd = -1;
	c->caller_at = -1;
	local_drop(c->api, &caller);
}

void
local_tell_all(struct api *api)
{
	for (size_t at = 0; at < LIMIT_LOCALS; at++) {
		api->locals[at].told = false;
		if (api->locals[at].refs > 0 && api->locals[at].fd >= 0)
			tell(api, at);
	}
}

uint32_t
local_uid(const struct api *api, const struct caller *caller)
{
	return caller->kind == CALLER_KIND_LOCAL ? api->locals[caller->local].uid : 0;
}

bool
local_same(const struct api *api, const struct caller *a, const struct caller *b)
{
	return a->kind == b->kind && local_uid(api, a) == local_uid(api, b) &&
	       memcmp(a->token, b->token, sizeof(a->token)) == 0;
}
