/* SPDX-License-Identifier: Apache-2.0 */
/* The process itself, and paths of existing clients that have nothing behind them here. */
#include "route.h"
#include "rows.h"
#include "text.h"

static void
answer_literal(struct request *req, const char *json)
{
	request_answer(req, 200, "application/json", view_str(json));
}

int
on_healthz(struct request *req, struct err *err)
{
	(void)err;
	answer_literal(req, "{\"status\":\"ok\"}");
	return 0;
}

static void
on_health(void *owner, const struct answer *answer)
{
	struct request *req = owner;
	const struct msg_health_row *m = answer->m;
	struct json_out *o;

	if (request_refused(req, answer))
		return;
	if (!m->ready) {
		request_refuse(req, ERROR_UNAVAILABLE, 0, m->text);
		return;
	}
	o = request_out(req);
	json_out_object_begin(o);
	json_out_key_str(o, "status", view_str("ready"));
	json_out_object_end(o);
	request_json(req, 200);
}

int
on_readyz(struct request *req, struct err *err)
{
	return REQUEST_ASK(req, on_health, err, HEALTH, health, {0});
}

int
on_version(struct request *req, struct err *err)
{
	(void)err;
	answer_literal(req, "{\"service\":\"demilune\",\"semver\":\"" DEMILUNE_VERSION "\"}");
	return 0;
}

int
on_openapi(struct request *req, struct err *err)
{
	(void)err;
	request_answer(req, 200, "application/json", view_of(openapi_json, openapi_json_bytes));
	return 0;
}

/* Fixed answers, but only to those who may ask. */
static void
known_caller(struct request *req, const struct answer *answer, const char *json)
{
	if (!request_refused(req, answer))
		answer_literal(req, json);
}

static void
on_empty_known(void *owner, const struct answer *answer)
{
	known_caller(owner, answer, "[]");
}

int
on_empty_list(struct request *req, struct err *err)
{
	return REQUEST_ASK(req, on_empty_known, err, WHOAMI, whoami, {.caller = req->caller});
}

int
on_template_builds(struct request *req, struct err *err)
{
	return on_empty_list(req, err);
}

static void
on_snapshots_known(void *owner, const struct answer *answer)
{
	known_caller(owner, answer, "{\"snapshots\":[]}");
}

int
on_snapshots(struct request *req, struct err *err)
{
	return REQUEST_ASK(req, on_snapshots_known, err, WHOAMI, whoami, {.caller = req->caller});
}

int
on_volumes_later(struct request *req, struct err *err)
{
	(void)req;
	return refuse(err, NOT_BUILT,
		"volumes need a later release; files can be written and read through fs");
}

int
on_later(struct request *req, struct err *err)
{
	(void)req;
	return refuse(err, NOT_BUILT,
		"this release does not have that; GET /openapi.json lists what it has");
}
