/* SPDX-License-Identifier: Apache-2.0 */
/* Templates: read only; they are built on the host by `demilune template build`. */
#include "route.h"
#include "rows.h"

enum { TEMPLATE_NAME_MAX = 128 };

static void
template_out(struct json_out *o, const struct msg_template_row *m)
{
	json_out_object_begin(o);
	json_out_key_str(o, "name", m->name);
	row_digest(o, "digest", m->digest);
	json_out_key(o, "size_bytes");
	json_out_u64(o, m->size_bytes);
	json_out_key_str(o, "description", m->description);
	row_strings(o, "aliases", m->aliases);
	row_strings(o, "places", m->places);
	json_out_key_bool(o, "is_global", true);
	json_out_key_bool(o, "mounted", m->mounted);
	row_time(o, "created_at", m->created_ms);
	json_out_object_end(o);
}

static void
on_list(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (answer->type == MSG_TEMPLATE_ROW) {
		template_out(&req->out, answer->m);
	} else if (!request_refused(req, answer)) {
		json_out_array_end(&req->out);
		request_json(req, 200);
	}
}

int
on_template_list(struct request *req, struct err *err)
{
	json_out_array_begin(request_out(req));
	return REQUEST_ASK(
		req, on_list, err, TEMPLATE_LIST, template_list, {.caller = req->caller});
}

static void
on_got(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (request_refused(req, answer))
		return;
	template_out(request_out(req), answer->m);
	request_json(req, 200);
}

int
on_template_get(struct request *req, struct err *err)
{
	if (req->arg[0].n > TEMPLATE_NAME_MAX)
		return refuse(err, NOT_FOUND, "no such template: its name is too long");
	return REQUEST_ASK(req, on_got, err, TEMPLATE_GET, template_get,
		{.caller = req->caller, .name = req->arg[0]});
}

int
on_template_build(struct request *req, struct err *err)
{
	(void)req;
	return refuse(err, NOT_BUILT,
		"templates are built on the host: `demilune template build` and `demilune template "
		"import`");
}
