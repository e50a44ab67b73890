/* SPDX-License-Identifier: Apache-2.0 */
/* What a head and a body mean as a request; answers are in answer.c. See request.h. */
#include "request.h"

#include "body.h"
#include "conn.h"
#include "job.h"
#include "lib/base/hex.h"
#include "lib/base/num.h"
#include "lib/http/ws_hand.h"
#include "lib/json/parse.h"
#include "lib/loop/loop.h"
#include "local.h"
#include "route.h"

#include <errno.h>
#include <sys/random.h>

_Static_assert(sizeof(((struct request *)0)->accept_key) >= WS_ACCEPT_TEXT, "room for the key");

static void
on_timer(struct ev_loop *loop, ev_timer *w, int events)
{
	struct request *req = container_of(w, struct request, timer);

	(void)loop, (void)events;
	req->ops->tick(req);
}

static void
id_make(struct request *req)
{
	uint8_t b[8];

	must(getrandom(b, sizeof(b), 0) == (ssize_t)sizeof(b));
	hex_encode(b, sizeof(b), req->id);
}

struct request *
request_new(struct api *api, struct conn *conn)
{
	struct request *req = calloc(1, sizeof(*req));

	if (req == NULL)
		return NULL;
	req->api = api;
	req->conn = conn;
	id_make(req);
	list_init(&req->asks);
	buf_init(&req->body, LIMIT_JSON_BYTES);
	buf_init(&req->text, LIMIT_ANSWER_BYTES);
	ev_timer_init(&req->timer, on_timer, 0, 0);
	return req;
}

void
request_free(struct request *req)
{
	if (req == NULL)
		return;
	ev_timer_stop(req->api->loop, &req->timer);
	ask_forget_all(&req->asks);
	if (req->ops != NULL && req->ops->gone != NULL)
		req->ops->gone(req);
	job_free(take_ptr(req->job));
	buf_done(&req->body);
	buf_done(&req->text);
	free(take_ptr(req->fields));
	json_decref(req->json);
	loop_free_later(req->api->loop, req->texts);
	loop_free_later(req->api->loop, req);
}

static struct view
head_value(const struct http_head *head, const char *name)
{
	unsigned n;
	const struct http_field *f = http_head_field(head, name, &n);

	return f == NULL ? view_of(NULL, 0) : f->value;
}

static bool
safe_text(struct view v, size_t max)
{
	for (size_t i = 0; i < v.n; i++)
		if (v.p[i] <= ' ' || v.p[i] >= 0x7f || v.p[i] == '"' || v.p[i] == '\\')
			return false;
	return v.n > 0 && v.n <= max;
}

static void
caller_token(struct request *req, struct view token)
{
	req->caller.kind = CALLER_KIND_TOKEN;
	sha256_of(token, req->caller.token);
}

/* The other header that clients of the wire send a token in; 1 when there is none. */
static int
caller_key(struct request *req, const struct http_head *head, struct err *err)
{
	struct view key = head_value(head, "x-api-key");
	unsigned n = 0;

	(void)http_head_field(head, "x-api-key", &n);
	if (n == 0)
		return 1;
	if (n > 1 || !safe_text(key, 256))
		return refuse(err, UNAUTHORIZED, "X-API-Key must be one token");
	caller_token(req, key);
	return 0;
}

/* A token goes before the uid; its text is not kept. What looks like one and is none is refused: never the uid's right. */
static int
caller_read(struct request *req, const struct http_head *head, struct err *err)
{
	struct view auth = head_value(head, "authorization");
	struct view query = request_param(req, "access_token");
	unsigned n = 0;
	int r;

	(void)http_head_field(head, "authorization", &n);
	if (n > 1)
		return refuse(err, UNAUTHORIZED, "more than one Authorization header");
	if (auth.n > 7 && view_eq_nocase(view_of(auth.p, 7), view_str("bearer ")) &&
		safe_text(view_skip(auth, 7), 256)) {
		caller_token(req, view_skip(auth, 7));
		return 0;
	}
	if (n == 1)
		return refuse(
			err, UNAUTHORIZED, "Authorization must be \"Bearer\", a blank and a token");
	r = caller_key(req, head, err);
	if (r <= 0)
		return r;
	if (http_param_find(&req->params, "access_token") != NULL) {
		if (!safe_text(query, 256))
			return refuse(err, UNAUTHORIZED, "access_token= must be one token");
		caller_token(req, query);
		return 0;
	}
	if (req->conn->local)
		return local_caller(req->conn, &req->caller, err);
	if (req->route->scope == ROUTE_PUBLIC)
		return 0;
	return refuse(err, UNAUTHORIZED,
		"a token is needed: send Authorization: Bearer; `demilune token create` makes one");
}

/* Digest of caller and key, so that no caller meets another's. */
static int
key_read(struct request *req, const struct http_head *head, struct err *err)
{
	static const char domain[] = "demilune-idempotency-key";
	struct view key = head_value(head, "idempotency-key");
	uint8_t kind = (uint8_t)req->caller.kind;
	uint32_t uid = local_uid(req->api, &req->caller);
	unsigned n = 0;
	struct sha256 h;

	(void)http_head_field(head, "idempotency-key", &n);
	if (n == 0)
		return 0;
	if (n > 1)
		return refuse(err, BAD_REQUEST, "more than one Idempotency-Key header");
	if (!safe_text(key, REQUEST_KEY_MAX))
		return refuse(err, BAD_REQUEST,
			"Idempotency-Key must be 1 to %d printable characters without blanks",
			REQUEST_KEY_MAX);
	sha256_init(&h);
	sha256_add(&h, domain, sizeof(domain));
	sha256_add(&h, &kind, 1);
	sha256_add(&h, &uid, sizeof(uid));
	sha256_add(&h, req->caller.token, sizeof(req->caller.token));
	sha256_add(&h, key.p, key.n);
	sha256_end(&h, req->key);
	return 0;
}

/* Decodes what stood for {...} and the query into req->texts. */
static int
texts_read(struct request *req, const struct http_target *target, struct err *err)
{
	size_t at = 0;

	for (size_t i = 0; i < req->nargs; i++) {
		size_t n;

		if (!http_percent_decode(req->arg[i], 0, req->texts + at, &n))
			return refuse(err, NOT_FOUND,
				"no such object: its name in the path is not UTF-8");
		req->arg[i] = view_of(req->texts + at, n);
		at += n;
	}
	if (target->has_query &&
		http_query_parse(target->query, 0, req->texts + at, &req->params) != HTTP_FINE)
		return refuse(err, BAD_REQUEST,
			"the query must be name=value pairs in UTF-8, without NUL and no name "
			"twice");
	return 0;
}

static int
route_read(struct request *req, const struct http_head *head, struct err *err)
{
	const struct http_target *target = &head->target;
	struct view segment[ROUTE_SEGMENTS];
	size_t n;

	req->texts = malloc(head->target_text.n + 1);
	if (req->texts == NULL)
		return refuse(err, INTERNAL, "no memory for a request");
	if (target->form != HTTP_FORM_ORIGIN && target->form != HTTP_FORM_ABSOLUTE)
		return refuse(err, BAD_REQUEST, "the request target must be a path");
	if (http_path_split(target->path, segment, ROUTE_SEGMENTS, &n) != HTTP_FINE)
		return refuse(
			err, NOT_FOUND, "there is no such path; GET /openapi.json lists them");
	if (route_find(head->method, segment, n, &req->route, req->arg, &req->nargs, &req->allow,
		    err) < 0)
		return err->code;
	return texts_read(req, target, err);
}

/* What a page of a browser can send by itself, a form, is of none of these types. */
static int
type_check(const struct request *req, const struct http_head *head, struct err *err)
{
	static const char json[] = "application/json";
	struct view type = head_value(head, "content-type");
	const uint8_t *end = type.n == 0 ? NULL : memchr(type.p, ';', type.n);
	unsigned n = 0;

	if (req->route->kind != ROUTE_TYPED)
		return 0;
	(void)http_head_field(head, "content-type", &n);
	if (end != NULL)
		type.n = (size_t)(end - type.p);
	while (type.n > 0 && (type.p[type.n - 1] == ' ' || type.p[type.n - 1] == '\t'))
		type.n--;
	if (n == 1 && view_eq_nocase(type, view_str(json)))
		return 0;
	return refuse(err, TYPE, "this path takes JSON: send Content-Type: %s", json);
}

int
request_begin(struct request *req, const struct http_head *head, struct err *err)
{
	struct view id = head_value(head, "x-request-id");

	if (safe_text(id, REQUEST_ID_MAX)) {
		memcpy(req->id, id.p, id.n);
		req->id[id.n] = 0;
	}
	req->length = head->length;
	req->chunked = head->framing == HTTP_BODY_CHUNKED;
	req->chunks_ok = head->minor == 1;
	req->ndjson = view_starts(head_value(head, "accept"), "application/x-ndjson");
	if (route_read(req, head, err) < 0 || caller_read(req, head, err) < 0 ||
		key_read(req, head, err) < 0 || type_check(req, head, err) < 0)
		return err->code;
	req->conn->caller = req->caller;
	if (req->api->nconns > LIMIT_CONNECTIONS_CALLER &&
		conn_of_caller(req->conn) > LIMIT_CONNECTIONS_CALLER)
		return refuse(err, RATE,
			"%d requests of this caller are under way; wait until one is answered",
			LIMIT_CONNECTIONS_CALLER);
	req->socket_refusal = ws_hand_check(head, req->accept_key);
	return 0;
}

/* ?mode= in octal; permission bits only. */
int
request_mode(const struct request *req, uint32_t absent, uint32_t *ret, struct err *err)
{
	struct view v = request_param(req, "mode");
	uint32_t mode = 0;

	for (size_t i = 0; i < v.n; i++) {
		if (v.n > 4 || v.p[i] < '0' || v.p[i] > '7')
			return refuse(err, BAD_REQUEST, "mode must be octal permissions, 0 to 777");
		mode = mode << 3 | (uint32_t)(v.p[i] - '0');
	}
	if (mode > 0777)
		return refuse(err, BAD_REQUEST, "mode must be octal permissions, 0 to 777");
	*ret = v.n == 0 ? absent : mode;
	return 0;
}

/* What the key stands for: the route and the bytes of the body. */
static void
body_digest(struct request *req)
{
	struct sha256 h;

	if (!request_keyed(req))
		return;
	sha256_init(&h);
	sha256_add(&h, req->route->path, strlen(req->route->path) + 1);
	sha256_add(&h, req->body.p, req->body.n);
	sha256_end(&h, req->body_digest);
}

/* What the parsed JSON takes at most: its texts, and an object of the parser for each value. */
static size_t
json_cost(struct view text)
{
	enum { VALUE_BYTES = 96 };
	size_t values = 0;

	for (size_t i = 0; i < text.n && values < JSON_VALUES_MAX; i++)
		if (text.p[i] == ',' || text.p[i] == ':' || text.p[i] == '{' || text.p[i] == '[')
			values++;
	return text.n + values * VALUE_BYTES;
}

const char request_full[] =
	"too much is being held for this caller or for all; read the answers that are under way, "
	"then try again";

int
request_body(struct request *req, struct err *err)
{
	static const struct json_limits limits = {
		.max_bytes = LIMIT_JSON_BYTES, .max_depth = LIMIT_JSON_DEPTH, .nul_ok = false};
	enum route_kind kind = req->route->kind;
	json_t *json = NULL;
	int r;

	if (kind != ROUTE_JSON && kind != ROUTE_TYPED && kind != ROUTE_MAYBE)
		return 0;
	body_digest(req);
	if (req->body.n == 0 && kind != ROUTE_MAYBE)
		return refuse(err, BAD_REQUEST, "a JSON object is needed as body");
	r = json_parse(
		req->body.n == 0 ? view_str("{}") : buf_view(&req->body), &limits, &json, err);
	if (r < 0)
		return err->code = -(r == -ENOMEM  ? ERROR_INTERNAL
				     : r == -E2BIG ? ERROR_TOO_LARGE
						   : ERROR_BAD_REQUEST);
	req->json = json;
	req->held = json_cost(buf_view(&req->body));
	buf_done(&req->body); /* the JSON has its own copies */
	if (!conn_fits(req->conn))
		return refuse(err, UNAVAILABLE, "%s", request_full);
	return body_read(req->route->body, json, &req->fields, err);
}

static void
on_checked(void *owner, const struct answer *answer)
{
	struct request *req = owner;
	const struct msg_refused *m = answer->m;

	req->checking = false;
	if (answer->type == MSG_REFUSED &&
		(m->error == ERROR_UNAUTHORIZED || m->error == ERROR_FORBIDDEN))
		req->ops->revoked(req, m->text);
}

void
request_check(struct request *req)
{
	struct err err = {0};

	if (req->checking)
		return;
	req->checking = true;
	if (REQUEST_ASK(req, on_checked, &err, WHOAMI, whoami, {.caller = req->caller}) < 0)
		req->checking = false; /* no engine: it is asked at the next heartbeat */
}

bool
request_keyed(const struct request *req)
{
	static const uint8_t none[SHA256_BYTES];

	return memcmp(req->key, none, sizeof(none)) != 0;
}

int
request_unkeyed(const struct request *req, const char *why, struct err *err)
{
	return request_keyed(req) ? refuse(err, BAD_REQUEST, "no Idempotency-Key here: %s", why)
				  : 0;
}

int
request_id(
	const struct request *req, size_t arg, const char *prefix, struct id *ret, struct err *err)
{
	must(arg < req->nargs);
	if (id_parse(req->arg[arg], prefix, ret) == 0)
		return 0;
	return refuse(err, NOT_FOUND,
		"no such object: the identifier is not \"%s\" and %d characters", prefix,
		ID_DIGITS);
}

struct view
request_param(const struct request *req, const char *name)
{
	const struct http_param *p = http_param_find(&req->params, name);

	return p == NULL ? view_of(NULL, 0) : p->value;
}

bool
request_flag(const struct request *req, const char *name)
{
	struct view v = request_param(req, name);

	return view_is(v, "1") || view_is(v, "true");
}

int
request_number(const struct request *req, const char *name, uint64_t absent, uint64_t max,
	uint64_t *ret, struct err *err)
{
	struct view v = request_param(req, name);

	if (v.n == 0) {
		*ret = absent;
		return 0;
	}
	if (num_u64(v, max, ret) == 0)
		return 0;
	return refuse(err, BAD_REQUEST, "%s must be a whole number of at most %llu", name,
		(unsigned long long)max);
}
