/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of policies; see egress_rule.h. */
#include "config/egress_rule.h"

#include "config/provider.h"
#include "config/url.h"
#include "lib/canon/form.h"
#include "lib/egress/rules.h"

enum {
	FETCH_BYTES = 8 << 20,
	BROKERED_BYTES = 256 << 10,
	BODY_METHODS = 1U << HTTP_POST | 1U << HTTP_PUT | 1U << HTTP_PATCH,
	PASSTHROUGH_PORT = 443,
};

/* Where the keys that kinds share stand in the table of each; KEYS: it has none. */
static const struct {
	enum section_id section;
	enum key_id rule, url, name, port, address, methods, query, request_max, response_max,
		websocket, roots;
} kinds[RULE_KIND_MAX] = {
	[RULE_KIND_FETCH] = {SECTION_FETCH, KEY_RULE_FETCH, KEY_FETCH_URL, KEYS, KEYS,
		KEY_FETCH_ADDRESS, KEY_FETCH_METHODS, KEY_FETCH_QUERY, KEY_FETCH_REQUEST_MAX,
		KEY_FETCH_RESPONSE_MAX, KEY_FETCH_WEBSOCKET, KEY_FETCH_ROOTS},
	[RULE_KIND_BROKERED] = {SECTION_BROKERED, KEY_RULE_BROKERED, KEY_BROKERED_URL, KEYS, KEYS,
		KEY_BROKERED_ADDRESS, KEY_BROKERED_METHODS, KEY_BROKERED_QUERY, KEYS,
		KEY_BROKERED_RESPONSE_MAX, KEYS, KEY_BROKERED_ROOTS},
	[RULE_KIND_TCP] = {SECTION_TCP, KEY_RULE_TCP, KEYS, KEY_TCP_NAME, KEY_TCP_PORT,
		KEY_TCP_ADDRESS, KEYS, KEYS, KEYS, KEYS, KEYS, KEYS},
	[RULE_KIND_PASSTHROUGH] = {SECTION_PASSTHROUGH, KEY_RULE_PASSTHROUGH, KEYS,
		KEY_PASSTHROUGH_NAME, KEY_PASSTHROUGH_PORT, KEY_PASSTHROUGH_ADDRESS, KEYS, KEYS,
		KEYS, KEYS, KEYS, KEYS},
};

static const struct node *
at(const struct rule_source *r, enum key_id key)
{
	return key == KEYS ? NULL : r->s.at[key];
}

/* ---- the place ---- */

static void
port_check(struct builder *b, struct place where, struct rule_source *r)
{
	if (r->rule.port != GATEWAY_DNS_PORT && r->rule.port != GATEWAY_PROXY_PORT)
		return;
	fault(b, where, "port %u is the gateway's own in every sandbox (53: DNS, 3128: the proxy)",
		r->rule.port);
	r->placed = false;
}

static void
read_address(struct builder *b, struct rule_source *r)
{
	const struct node *n = at(r, kinds[r->rule.kind].address);
	char text[CONFIG_ADDRESS_BYTES] = "";
	struct address a;
	bool loopback;

	if (n == NULL)
		return;
	if (!address_read(n->text, text, &loopback)) {
		fault(b, n->at, "address must be one IP address, such as 10.0.0.5, without a port");
		return;
	}
	if (address_parse(n->text, &a) < 0)
		fault(b, n->at, "write this address as %s", text);
	else if (r->placed && r->rule.labels != LABELS_NONE)
		fault(b, n->at, "address is for one host; this rule has a * for many");
	else if (r->placed && r->rule.literal && !address_eq(&a, &r->rule.address))
		fault(b, n->at, "the host is one address and this is another");
	else
		memcpy(r->address, text, sizeof(text));
}

static void
read_place(struct builder *b, struct rule_source *r)
{
	const struct node *url = at(r, kinds[r->rule.kind].url);
	const struct node *name = at(r, kinds[r->rule.kind].name);
	const struct node *port = at(r, kinds[r->rule.kind].port);
	int64_t number = PASSTHROUGH_PORT;

	if (url != NULL)
		r->placed = url_read(b, url, r);
	if (name != NULL)
		r->placed = host_pattern_read(b, name->at, name->text, r);
	if (port != NULL)
		r->placed &= value_int(b, port, "port", 1, UINT16_MAX, &number);
	else if (r->rule.kind == RULE_KIND_TCP)
		r->placed = false;
	if (url == NULL)
		r->rule.port = (uint16_t)number;
	port_check(b, port != NULL ? port->at : url != NULL ? url->at : r->node->at, r);
	read_address(b, r);
}

/* ---- the request ---- */

static void
read_method(struct builder *b, const struct node *n, struct rule_source *r)
{
	enum http_method m = http_method_of(n->text);

	if (n->kind != NODE_SCALAR || m == HTTP_METHODS || m == HTTP_CONNECT)
		fault(b, n->at,
			"a method is GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS, in capital "
			"letters");
	else if (r->rule.methods >> m & 1)
		fault(b, n->at, "methods names %s twice", http_method_name(m));
	else if (r->rule.kind == RULE_KIND_BROKERED && m != HTTP_GET)
		fault(b, n->at,
			"a brokered rule takes GET only; what has an effect is an operation, see "
			"demilune-operations(5)");
	else
		r->rule.methods |= 1U << m;
}

static void
read_methods(struct builder *b, struct rule_source *r)
{
	const struct node *list = at(r, kinds[r->rule.kind].methods);

	if (list == NULL) {
		r->rule.methods = 1U << HTTP_GET;
		if (r->rule.kind == RULE_KIND_FETCH)
			r->rule.methods |= 1U << HTTP_HEAD;
		return;
	}
	if (list->first == NULL)
		fault(b, list->at,
			"methods is empty; a rule that takes no method lets nothing "
			"through: take the rule away");
	node_each(n, list) read_method(b, n, r);
}

size_t
texts_sort(struct builder *b, const struct node *list, const char *key,
	bool (*ok)(struct builder *b, const struct node *n), size_t max, const struct node **ret)
{
	size_t count = 0;

	node_each(n, list)
	{
		size_t i = count;

		if (!ok(b, n))
			continue;
		while (i > 0 && canon_key_compare(ret[i - 1]->text, n->text) > 0)
			i--;
		if (i > 0 && view_eq(ret[i - 1]->text, n->text)) {
			fault(b, n->at, "%s names %.*s twice", key, VIEW_ARGS(n->text));
			continue;
		}
		if (count == max) {
			fault(b, n->at, "%s has more than %zu entries", key, max);
			break;
		}
		memmove(ret + i + 1, ret + i, (count - i) * sizeof(*ret));
		ret[i] = n;
		count++;
	}
	return count;
}

static bool
parameter_ok(struct builder *b, const struct node *n)
{
	bool ok = n->kind == NODE_SCALAR && n->text.n > 0 && n->text.n <= POLICY_PARAMETER_MAX;

	for (size_t i = 0; ok && i < n->text.n; i++)
		ok = n->text.p[i] > ' ' && n->text.p[i] < 0x7f && n->text.p[i] != '"' &&
		     n->text.p[i] != '\\';
	if (!ok)
		fault(b, n->at,
			"a parameter is its name alone, decoded: 1 to 64 ASCII characters without "
			"blanks, \" and \\");
	else if (egress_parameter_is_credential(n->text)) {
		fault(b, n->at,
			"%.*s carries a credential, and programs have none to send; write a "
			"brokered rule",
			VIEW_ARGS(n->text));
		return false;
	}
	return ok;
}

static void
read_query(struct builder *b, struct rule_source *r)
{
	const struct node *list = at(r, kinds[r->rule.kind].query);

	if (list == NULL)
		return;
	if (list->first == NULL)
		fault(b, list->at,
			"query is empty; name a parameter, or leave it out: then no query is "
			"taken");
	r->rule.nquery = texts_sort(b, list, "query", parameter_ok, POLICY_QUERY_MAX, r->query);
}

static void
read_sizes(struct builder *b, struct rule_source *r)
{
	const struct node *in = at(r, kinds[r->rule.kind].response_max);
	const struct node *out = at(r, kinds[r->rule.kind].request_max);
	const struct node *methods = at(r, kinds[r->rule.kind].methods);
	bool brokered = r->rule.kind == RULE_KIND_BROKERED;
	bool body = (r->rule.methods & BODY_METHODS) != 0;

	r->rule.response_max = brokered ? BROKERED_BYTES : FETCH_BYTES;
	if (in != NULL)
		(void)value_bytes(b, in, "response_max", 1024,
			brokered ? (uint64_t)POLICY_BROKERED_BYTES_MAX : (uint64_t)POLICY_BODY_MAX,
			&r->rule.response_max);
	if (r->methods_told)
		return;
	if (out != NULL && !body)
		fault(b, out->key_at,
			"request_max is for POST, PUT and PATCH, and this rule takes none of them");
	else if (out != NULL)
		(void)value_bytes(b, out, "request_max", 1024, (uint64_t)POLICY_BODY_MAX,
			&r->rule.request_max);
	else if (body)
		fault(b, methods->at,
			"POST, PUT and PATCH carry bodies; say how large: request_max: 64KiB");
}

static void
read_flags(struct builder *b, struct rule_source *r)
{
	const struct node *websocket = at(r, kinds[r->rule.kind].websocket);
	const struct node *roots = at(r, kinds[r->rule.kind].roots);

	if (websocket != NULL && value_bool(b, websocket, "websocket", &r->rule.websocket) &&
		r->rule.websocket && (r->rule.methods & 1U << HTTP_GET) == 0)
		fault(b, websocket->at, "a WebSocket begins with GET; add it to methods");
	value_name(b, roots, "roots");
	if (roots == NULL)
		return;
	if (r->placed && !r->rule.tls)
		fault(b, roots->key_at, "roots are for https; take them away");
	r->rule.roots = roots->text;
}

/* ---- brokered ---- */

static void
read_credential(struct builder *b, struct rule_source *r)
{
	const struct node *n = r->s.at[KEY_BROKERED_CREDENTIAL];
	const struct section *s = &r->secret;

	if (n == NULL)
		return;
	if (n->kind != NODE_MAPPING) {
		value_name(b, n, "credential");
		return;
	}
	if (!section_read(b, SECTION_SECRET, n, &r->secret))
		return;
	value_name(b, s->at[KEY_SECRET_SECRET], "secret");
	if (s->at[KEY_SECRET_HEADER] != NULL)
		header_check(b, s->at[KEY_SECRET_HEADER]);
	if (s->at[KEY_SECRET_PREFIX] != NULL)
		prefix_check(b, s->at[KEY_SECRET_PREFIX]);
}

static bool
field_ok(struct builder *b, const struct node *n)
{
	bool good = n->kind == NODE_SCALAR && form_field_ok(n->text);

	if (good && rule_field_ok(n->text))
		return true;
	fault(b, n->at,
		good ? "a field that comes back begins with a letter and has at most 96 bytes, "
		       "no -, no __ and no _ beside a dot: data.0.id is called data__0__id there"
		     : "a field is a name in the answer's JSON, or names and numbers of entries "
		       "with dots between: data.0.id");
	return false;
}

static void
read_fields(struct builder *b, struct rule_source *r)
{
	const struct node *list = r->s.at[KEY_BROKERED_FIELDS];

	if (list == NULL)
		return;
	if (list->first == NULL)
		fault(b, list->at,
			"response_fields is empty; nothing of the answer would come back");
	r->rule.nfields = texts_sort(
		b, list, "response_fields", field_ok, POLICY_FIELDS_MAX, r->field);
	for (size_t i = 0; i < r->rule.nfields; i++)
		for (size_t k = 0; k < r->rule.nfields; k++) {
			struct view part = r->field[i]->text, whole = r->field[k]->text;

			if (part.n > whole.n && part.p[whole.n] == '.' &&
				memcmp(part.p, whole.p, whole.n) == 0)
				fault(b, r->field[i]->at,
					"%.*s is a part of %.*s, which is one value then; keep one",
					VIEW_ARGS(part), VIEW_ARGS(whole));
		}
}

static void
read_brokered(struct builder *b, struct rule_source *r)
{
	int64_t uses = 0;

	read_credential(b, r);
	read_fields(b, r);
	if (r->s.at[KEY_BROKERED_USES] != NULL)
		(void)value_int(b, r->s.at[KEY_BROKERED_USES], "uses", 1, POLICY_USES_MAX, &uses);
	r->rule.uses = (uint32_t)uses;
}

/* The one key of a rule says its kind; NULL: told. */
static const struct node *
kind_of(struct builder *b, const struct node *n, enum rule_kind *ret)
{
	const struct node *found = NULL;
	struct section s;
	unsigned before = b->faults, count = 0;

	if (!section_read(b, SECTION_RULE, n, &s))
		return NULL;
	for (unsigned k = 0; k < RULE_KIND_MAX; k++)
		if (s.at[kinds[k].rule] != NULL) {
			found = s.at[kinds[k].rule];
			*ret = (enum rule_kind)k;
			count++;
		}
	if (count == 1 || b->faults != before)
		return count == 1 ? found : NULL;
	fault(b, n->at,
		count == 0 ? "a rule is one of fetch, brokered, tcp and passthrough, such as - "
			     "fetch: {url: ...}"
			   : "a rule is of one kind; begin each with a - of its own");
	return NULL;
}

void
rule_source_read(struct builder *b, const struct node *n, struct rule_source *ret)
{
	struct rule_source *r = ret;
	const struct node *body;
	unsigned before;

	*r = (struct rule_source){.node = n};
	body = kind_of(b, n, &r->rule.kind);
	if (body == NULL || !section_read(b, kinds[r->rule.kind].section, body, &r->s))
		return;
	read_place(b, r);
	if (kinds[r->rule.kind].url == KEYS)
		return;
	before = b->faults;
	read_methods(b, r);
	r->methods_told = b->faults != before;
	read_query(b, r);
	read_sizes(b, r);
	read_flags(b, r);
	if (r->rule.kind == RULE_KIND_BROKERED)
		read_brokered(b, r);
}

/* ---- the document ---- */

static void
put_text(struct canon_writer *w, const char *key, struct view v)
{
	if (v.n == 0)
		return;
	put_key(w, key);
	canon_str(w, v);
}

static void
put_texts(struct canon_writer *w, const char *key, const struct node *const *n, size_t count)
{
	if (count == 0)
		return;
	put_key(w, key);
	canon_array_begin(w);
	for (size_t i = 0; i < count; i++)
		canon_str(w, n[i]->text);
	canon_array_end(w);
}

static void
put_number(struct canon_writer *w, const char *key, uint64_t n)
{
	if (n == 0)
		return;
	put_key(w, key);
	canon_u64(w, n);
}

static void
put_true(struct canon_writer *w, const char *key, bool is)
{
	if (!is)
		return;
	put_key(w, key);
	canon_bool(w, true);
}

static struct view
text_at(const struct section *s, enum key_id key)
{
	return s->at[key] == NULL ? view_of(NULL, 0) : s->at[key]->text;
}

static void
put_credential(const struct rule_source *r, struct canon_writer *w)
{
	bool name = r->secret.node == NULL;

	put_key(w, "credential");
	canon_object_begin(w);
	put_text(w, "header",
		name ? view_str("Authorization") : text_at(&r->secret, KEY_SECRET_HEADER));
	put_text(w, "prefix", name ? view_str("Bearer ") : text_at(&r->secret, KEY_SECRET_PREFIX));
	put_text(w, "secret",
		name ? text_at(&r->s, KEY_BROKERED_CREDENTIAL)
		     : text_at(&r->secret, KEY_SECRET_SECRET));
	canon_object_end(w);
}

static void
put_methods(const struct rule_source *r, struct canon_writer *w)
{
	put_key(w, "methods");
	canon_array_begin(w);
	for (unsigned m = 0; m < HTTP_METHODS; m++)
		if (r->rule.methods >> m & 1)
			canon_str(w, view_str(http_method_name((enum http_method)m)));
	canon_array_end(w);
}

void
rule_source_write(const struct rule_source *r, struct canon_writer *w)
{
	const struct rule *rule = &r->rule;
	bool brokered = rule->kind == RULE_KIND_BROKERED;
	bool request = rule->path.n > 0;

	canon_object_begin(w);
	put_text(w, "address", view_str(r->address));
	if (brokered)
		put_credential(r, w);
	put_texts(w, "fields", r->field, rule->nfields);
	put_text(w, "host", rule->host);
	put_text(w, "kind", view_str(rule_kind_text(rule->kind)));
	if (rule->labels != LABELS_NONE)
		put_text(w, "labels", view_str(rule->labels == LABELS_ONE ? "one" : "many"));
	if (request)
		put_methods(r, w);
	put_text(w, "path", rule->path);
	put_number(w, "port", rule->port);
	put_texts(w, "query", r->query, rule->nquery);
	put_number(w, "request_max", rule->request_max);
	put_number(w, "response_max", rule->response_max);
	put_text(w, "roots", rule->roots);
	put_true(w, "tls", rule->tls && !brokered);
	put_number(w, "uses", rule->uses);
	put_true(w, "websocket", rule->websocket);
	canon_object_end(w);
}
