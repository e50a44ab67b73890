/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes: create, list, get, end, pause, life, metrics. The object is a superset of the one existing clients know. */
#include "rows.h"

#include "body.h"
#include "lib/base/clock.h"
#include "route.h"

enum { LABEL_MAX = 512, METADATA_MAX = 16384 };

static void
one_row(void *owner, const struct answer *answer, unsigned status)
{
	struct request *req = owner;

	if (request_refused(req, answer))
		return;
	row_sandbox(request_out(req), answer->m);
	request_json(req, status);
}

static void
on_created(void *owner, const struct answer *answer)
{
	one_row(owner, answer, 201);
}

static void
on_row(void *owner, const struct answer *answer)
{
	one_row(owner, answer, 200);
}

static int
task_read(const struct field_str *f, struct id *ret, struct err *err)
{
	if (f->state == FIELD_SET && id_parse(f->v, ID_TASK, ret) < 0)
		return refuse(err, BAD_REQUEST, "task must be an identifier that begins with %s",
			ID_TASK);
	return 0;
}

int
on_sandbox_create(struct request *req, struct err *err)
{
	const struct body_sandbox_create *b = req->fields;
	struct msg_sandbox_create m = {.caller = req->caller,
		.tenant = b->tenant.v,
		.template = b->template.v,
		.ttl_ms = (uint64_t)b->ttl_seconds_ms.v,
		.idle_ms = (uint64_t)b->idle_limit_seconds_ms.v,
		.persistent = b->persistent.v,
		.policy = b->policy.v,
		.request_id = view_str(req->id)};
	auto_buf struct buf metadata;

	if (task_read(&b->task, &m.task, err) < 0)
		return err->code;
	if (m.template.n == 0 && id_is_zero(&m.task))
		m.template = view_str(
			"code-interpreter"); /* what existing clients mean by nothing */
	buf_init(&metadata, METADATA_MAX);
	body_map(&b->metadata, false, &metadata);
	if (buf_check(&metadata) < 0)
		return refuse(err, TOO_LARGE, "metadata may have at most %d bytes", METADATA_MAX);
	m.metadata = buf_view(&metadata);
	memcpy(m.idempotency_key, req->key, sizeof(req->key));
	memcpy(m.idempotency_body, req->body_digest, sizeof(req->body_digest));
	body_limits(&b->limits_in, &m.limits);
	return REQUEST_ASK(req, on_created, err, SANDBOX_CREATE, sandbox_create, m);
}

/* ---- list: all of them in a bare array, or one page as {items, more} when a limit is given ---- */

static int sandbox_list_ask(struct request *req, const struct id *after, struct err *err);

static void
on_list(void *owner, const struct answer *answer)
{
	struct request *req = owner;
	struct err err = {0};

	if (answer->type == MSG_SANDBOX_ROW) {
		const struct msg_sandbox_row *m = answer->m;

		row_sandbox(&req->out, m);
		req->last = m->sandbox;
		return;
	}
	if (request_refused(req, answer))
		return;
	if (request_param(req, "limit").n > 0) {
		row_page_end(req, ((const struct msg_end *)answer->m)->more);
		return;
	}
	if (((const struct msg_end *)answer->m)->more && !req->text.failed) {
		if (sandbox_list_ask(req, &req->last, &err) < 0)
			request_fail(req, &err);
		return;
	}
	json_out_array_end(&req->out);
	request_json(req, 200);
}

static int
sandbox_list_ask(struct request *req, const struct id *after, struct err *err)
{
	struct msg_sandbox_list m = {.caller = req->caller, .after = *after};
	auto_buf struct buf label;
	uint64_t limit;

	buf_init(&label, LABEL_MAX);
	if (request_number(req, "limit", LIMIT_PAGE, LIMIT_PAGE, &limit, err) < 0 ||
		row_label(req, &label, err) < 0)
		return err->code;
	m.limit = (uint16_t)limit;
	m.label = buf_view(&label);
	return REQUEST_ASK(req, on_list, err, SANDBOX_LIST, sandbox_list, m);
}

int
on_sandbox_list(struct request *req, struct err *err)
{
	struct id after;

	if (row_after(req, ID_SANDBOX, &after, err) < 0)
		return err->code;
	if (request_param(req, "limit").n > 0)
		row_page_begin(req);
	else
		json_out_array_begin(request_out(req));
	return sandbox_list_ask(req, &after, err);
}

/* ---- one ---- */

static bool
has_ended(const struct msg_sandbox_row *m)
{
	return m->state == SANDBOX_STATE_GONE || m->state == SANDBOX_STATE_FAILED;
}

/* What ended is not there any more for existing clients, unless they ask for the record of it. */
static bool
gone_refused(struct request *req, const struct answer *answer)
{
	const struct msg_sandbox_row *m = answer->m;
	char text[128];

	if (request_refused(req, answer))
		return true;
	if (!has_ended(m) || request_flag(req, "ended"))
		return false;
	(void)snprintf(text, sizeof(text),
		"the sandbox ended (%s); its record is shown with ended (?ended=1, --ended)",
		sandbox_reason_text(m->reason));
	request_refuse(req, ERROR_NOT_FOUND, 0, view_str(text));
	return true;
}

static void
on_got(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (gone_refused(req, answer))
		return;
	row_sandbox(request_out(req), answer->m);
	request_json(req, 200);
}

static int
get(struct request *req, ask_fn *fn, struct err *err)
{
	struct msg_sandbox_get m = {.caller = req->caller};

	if (request_id(req, 0, ID_SANDBOX, &m.sandbox, err) < 0)
		return err->code;
	return REQUEST_ASK(req, fn, err, SANDBOX_GET, sandbox_get, m);
}

int
on_sandbox_get(struct request *req, struct err *err)
{
	return get(req, on_got, err);
}

static void
on_killed(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (answer->type == MSG_REFUSED || request_flag(req, "proof"))
		on_row(owner, answer);
	else
		request_nothing(req);
}

int
on_sandbox_kill(struct request *req, struct err *err)
{
	struct msg_sandbox_kill m = {.caller = req->caller};

	if (request_id(req, 0, ID_SANDBOX, &m.sandbox, err) < 0)
		return err->code;
	return REQUEST_ASK(req, on_killed, err, SANDBOX_KILL, sandbox_kill, m);
}

static void
on_frozen(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (!request_refused(req, answer))
		request_nothing(req);
}

static int
freeze(struct request *req, bool frozen, struct err *err)
{
	struct msg_sandbox_freeze m = {.caller = req->caller, .frozen = frozen};

	if (request_id(req, 0, ID_SANDBOX, &m.sandbox, err) < 0)
		return err->code;
	return REQUEST_ASK(req, on_frozen, err, SANDBOX_FREEZE, sandbox_freeze, m);
}

int
on_pause(struct request *req, struct err *err)
{
	return freeze(req, true, err);
}

int
on_resume(struct request *req, struct err *err)
{
	return freeze(req, false, err);
}

/* ---- life ---- */

static void
on_life(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (gone_refused(req, answer))
		return;
	json_out_object_begin(request_out(req));
	row_life(&req->out, answer->m);
	json_out_object_end(&req->out);
	request_json(req, 200);
}

int
on_lifecycle_get(struct request *req, struct err *err)
{
	return get(req, on_life, err);
}

int
on_lifecycle_set(struct request *req, struct err *err)
{
	enum { SET_TTL = 1, SET_IDLE = 2, SET_PERSISTENT = 4 };
	const struct body_lifecycle *b = req->fields;
	struct msg_sandbox_life m = {.caller = req->caller,
		.ttl_ms = (uint64_t)b->ttl_seconds_ms.v,
		.idle_ms = (uint64_t)b->idle_limit_seconds_ms.v,
		.persistent = b->persistent.v};

	if (b->ttl_seconds_ms.state == FIELD_SET)
		m.set |= SET_TTL;
	if (b->idle_limit_seconds_ms.state == FIELD_SET)
		m.set |= SET_IDLE;
	if (b->persistent.state == FIELD_SET)
		m.set |= SET_PERSISTENT;
	if (m.set == 0)
		return refuse(
			err, BAD_REQUEST, "give ttl_seconds, idle_limit_seconds or persistent");
	if (request_id(req, 0, ID_SANDBOX, &m.sandbox, err) < 0)
		return err->code;
	return REQUEST_ASK(req, on_life, err, SANDBOX_LIFE, sandbox_life, m);
}

static void
on_usage(void *owner, const struct answer *answer)
{
	struct request *req = owner;
	const struct msg_usage_row *m = answer->m;
	struct json_out *o;

	if (request_refused(req, answer))
		return;
	o = request_out(req);
	json_out_object_begin(o);
	json_out_key_int(o, "pid", m->host_pid);
	json_out_key_int(o, "uptime_seconds", (int64_t)(m->uptime_ms / 1000));
	json_out_key(o, "host_cpu_percent");
	json_out_fixed3(o, m->uptime_ms == 0 ? 0 : (int64_t)(m->usage.cpu_us * 100 / m->uptime_ms));
	json_out_key_int(o, "host_rss_bytes", (int64_t)m->usage.memory_bytes);
	json_out_key_int(o, "threads", m->usage.pids);
	row_usage(o, &m->usage);
	json_out_object_end(o);
	request_json(req, 200);
}

int
on_metrics(struct request *req, struct err *err)
{
	struct msg_sandbox_usage m = {.caller = req->caller};

	if (request_id(req, 0, ID_SANDBOX, &m.sandbox, err) < 0)
		return err->code;
	return REQUEST_ASK(req, on_usage, err, SANDBOX_USAGE, sandbox_usage, m);
}

int
on_microvm(struct request *req, struct err *err)
{
	(void)req;
	return refuse(err, NOT_BUILT,
		"this sandbox is a container: hibernating, snapshots and forks need the microvm "
		"runtime, which this "
		"release does not have");
}
