/* SPDX-License-Identifier: Apache-2.0 */
/* Providers; see provider.h. */
#include "config/provider.h"

#include "config/template.h"
#include "config/unit.h"
#include "lib/base/host.h"
#include "lib/base/name.h"
#include "lib/base/num.h"

#include <arpa/inet.h>

enum {
	TIMEOUT_MS = 10000,
	TIMEOUT_MAX_MS = 120000,
	RESPONSE_BYTES = 64 << 10,
	RESPONSE_MAX_BYTES = 1 << 20,
};

static const char *const key_formats[] = {"raw", "structured", NULL};
static const char *const lookups[] = {"key", "reference", NULL};

static void
read_account(struct builder *b, const struct node *n)
{
	bool ok = n->text.n > 0 && n->text.n <= 63;

	for (size_t i = 0; ok && i < n->text.n; i++)
		ok = n->text.p[i] > ' ' && n->text.p[i] < 0x7f && n->text.p[i] != '"' &&
		     n->text.p[i] != '\\';
	if (!ok)
		fault(b, n->at, "account must be 1 to 63 ASCII characters without blanks");
}

/* ---- origin and address ---- */

/* A name, or an IPv4 address; IPv6 stands in `address`. */
static bool
host_ok(struct view v)
{
	struct address literal;

	return host_name_ok(v) || (!view_has(v, ':') && address_parse(v, &literal) == 0);
}

static void
read_origin(struct builder *b, const struct node *n, struct provider_source *p)
{
	struct view v = n->text;
	const uint8_t *colon;
	uint64_t port;

	p->tls = view_starts(v, "https://");
	if (!p->tls && !view_starts(v, "http://")) {
		fault(b, n->at, "origin must begin with https://, such as https://api.example.org");
		return;
	}
	v = view_skip(v, p->tls ? 8 : 7);
	port = p->tls ? 443 : 80;
	if (view_has(v, '/') || view_has(v, '?') || view_has(v, '#')) {
		fault(b, n->at,
			"origin ends behind the host or port; the path stands in each request");
		return;
	}
	if (view_has(v, '@')) {
		fault(b, n->at, "origin has no user; write the secret as credential");
		return;
	}
	colon = v.n == 0 ? NULL : memchr(v.p, ':', v.n);
	p->host = colon == NULL ? v : view_of(v.p, (size_t)(colon - v.p));
	if (!host_ok(p->host)) {
		fault(b, n->at,
			"origin has no host that can be used; write a name in lower-case ASCII "
			"(an international one as xn--...), or an IPv4 address");
		return;
	}
	if (colon != NULL &&
		(num_u64(view_skip(v, p->host.n + 1), 65535, &port) < 0 || port == 0)) {
		fault(b, n->at, "the port of origin must be from 1 to 65535");
		return;
	}
	p->port = (uint16_t)port;
}

bool
address_read(struct view v, char ret[static CONFIG_ADDRESS_BYTES], bool *ret_loopback)
{
	char text[CONFIG_ADDRESS_BYTES] = "";
	struct in6_addr six;
	struct in_addr four;

	if (v.n == 0 || v.n >= sizeof(text))
		return false;
	memcpy(text, v.p, v.n);
	if (inet_pton(AF_INET, text, &four) == 1) {
		*ret_loopback = ntohl(four.s_addr) >> 24 == 127;
		return inet_ntop(AF_INET, &four, ret, CONFIG_ADDRESS_BYTES) != NULL;
	}
	if (inet_pton(AF_INET6, text, &six) != 1)
		return false;
	*ret_loopback = IN6_IS_ADDR_LOOPBACK(&six);
	return inet_ntop(AF_INET6, &six, ret, CONFIG_ADDRESS_BYTES) != NULL;
}

static void
read_address(struct builder *b, struct provider_source *p)
{
	const struct node *n = p->s.at[KEY_PROVIDER_ADDRESS], *o = p->s.at[KEY_PROVIDER_ORIGIN];
	char text[CONFIG_ADDRESS_BYTES] = "";
	bool loopback = false;

	if (n != NULL && !address_read(n->text, text, &loopback)) {
		fault(b, n->at, "address must be one IP address, such as 10.0.0.5");
		return;
	}
	if (n != NULL && !view_is(n->text, text))
		fault(b, n->at, "write this address as %s", text);
	else if (n != NULL && p->host.n > 0 && !host_name_ok(p->host) && !view_eq(n->text, p->host))
		fault(b, n->at, "origin is one address and this is another");
	else if (n != NULL)
		p->address = n->text;
	if (o != NULL && p->host.n > 0 && !p->tls && !loopback)
		fault(b, o->at,
			"http is only for this host itself: write https, or give the provider a "
			"loopback address, such as address: 127.0.0.1");
}

/* ---- credential and capability ---- */

void
header_check(struct builder *b, const struct node *n)
{
	static const char *const own[] = {"Host", "Connection", "Transfer-Encoding", "Expect", "TE",
		"Trailer", "Upgrade", "Cookie", "Accept-Encoding"};
	bool ok = n->text.n > 0 && n->text.n <= 63, free = true;

	for (size_t i = 0; ok && i < n->text.n; i++) {
		uint8_t c = n->text.p[i], lower = c | 0x20;

		ok = (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
		     c == '_';
	}
	if (!ok) {
		fault(b, n->at,
			"header must be the name of a request header, such as "
			"Authorization or X-Api-Key");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		free &= !view_eq_nocase(n->text, view_str(own[i]));
	free &= n->text.n < 8 || !view_eq_nocase(view_of(n->text.p, 8), view_str("Content-"));
	if (!free)
		fault(b, n->at,
			"the broker writes the header %.*s itself; it can carry nothing else",
			VIEW_ARGS(n->text));
}

void
prefix_check(struct builder *b, const struct node *n)
{
	bool ok = n->text.n > 0 && n->text.n <= 32;

	for (size_t i = 0; ok && i < n->text.n; i++)
		ok = n->text.p[i] >= ' ' && n->text.p[i] < 0x7f && n->text.p[i] != '"' &&
		     n->text.p[i] != '\\';
	if (!ok)
		fault(b, n->at,
			"prefix must be 1 to 32 ASCII characters without \" and \\, such as "
			"\"Bearer \"");
}

static void
read_credential(struct builder *b, struct provider_source *p)
{
	const struct node *n = p->s.at[KEY_PROVIDER_CREDENTIAL];
	struct section *s = &p->credential;

	if (n == NULL || !section_read(b, SECTION_CREDENTIAL, n, s))
		return;
	value_name(b, s->at[KEY_CREDENTIAL_SECRET], "secret");
	if (s->at[KEY_CREDENTIAL_HEADER] != NULL)
		header_check(b, s->at[KEY_CREDENTIAL_HEADER]);
	if (s->at[KEY_CREDENTIAL_PREFIX] != NULL)
		prefix_check(b, s->at[KEY_CREDENTIAL_PREFIX]);
}

static void
read_lookup(struct builder *b, struct provider_source *p)
{
	const struct node *n = p->capability.at[KEY_CAPABILITY_LOOKUP];
	struct section *s = &p->lookup;

	if (n == NULL || !section_read(b, SECTION_LOOKUP, n, s))
		return;
	if (s->at[KEY_LOOKUP_CONSISTENCY] != NULL)
		(void)value_duration(b, s->at[KEY_LOOKUP_CONSISTENCY], "consistency", 0, 604800000,
			&p->consistency_ms);
	if (s->at[KEY_LOOKUP_BY] != NULL &&
		value_word(b, s->at[KEY_LOOKUP_BY], "by", lookups, &p->lookup_by) &&
		p->lookup_by == LOOKUP_BY_KEY && p->key.node == NULL)
		fault(b, s->at[KEY_LOOKUP_BY]->at,
			"a lookup by key needs the key of the capability; add key: {header: ...}, "
			"or look up by reference");
	if (s->at[KEY_LOOKUP_LIST] != NULL)
		field_check(b, s->at[KEY_LOOKUP_LIST]);
	if (s->at[KEY_LOOKUP_FIELD] != NULL)
		field_check(b, s->at[KEY_LOOKUP_FIELD]);
}

/* What a provider says about keys without taking one. */
static void
refuse_without_key(struct builder *b, const struct section *s)
{
	static const enum key_id of_key[] = {KEY_CAPABILITY_KEY_WINDOW, KEY_CAPABILITY_CONCURRENT};

	for (size_t i = 0; i < ARRAY_LEN(of_key); i++) {
		const struct node *n = s->at[of_key[i]];

		if (n != NULL)
			fault(b, n->key_at,
				"%.*s is about the idempotency key; add key: {header: ...}, or "
				"take "
				"this away",
				VIEW_ARGS(n->key));
	}
}

static void
read_key(struct builder *b, struct provider_source *p)
{
	const struct section *c = &p->capability;
	const struct node *n = c->at[KEY_CAPABILITY_KEY], *header;
	const struct node *credential = p->credential.at[KEY_CREDENTIAL_HEADER];

	if (n == NULL) {
		refuse_without_key(b, c);
		return;
	}
	if (!section_read(b, SECTION_KEY, n, &p->key))
		return;
	header = p->key.at[KEY_KEY_HEADER];
	if (header != NULL)
		header_check(b, header);
	if (header != NULL && credential != NULL && view_eq_nocase(header->text, credential->text))
		fault(b, header->at, "the credential goes in this header; the key needs another");
	if (p->key.at[KEY_KEY_FORMAT] != NULL)
		(void)value_word(
			b, p->key.at[KEY_KEY_FORMAT], "format", key_formats, &p->key_format);
	if (c->at[KEY_CAPABILITY_KEY_WINDOW] != NULL)
		(void)value_duration(b, c->at[KEY_CAPABILITY_KEY_WINDOW], "key_window", 1000,
			UINT64_C(31622400000), &p->key_window_ms);
}

static void
read_capability(struct builder *b, struct provider_source *p)
{
	const struct node *n = p->s.at[KEY_PROVIDER_CAPABILITY];
	struct section *s = &p->capability;

	if (n == NULL || !section_read(b, SECTION_CAPABILITY, n, s))
		return;
	read_key(b, p);
	statuses_read(b, s->at[KEY_CAPABILITY_DEFINITE], "definite", 400, 499, &p->definite);
	statuses_read(b, s->at[KEY_CAPABILITY_NOT_PROCESSED], "not_processed", 400, 599,
		&p->not_processed);
	statuses_read(b, s->at[KEY_CAPABILITY_CONCURRENT], "concurrent", 400, 599, &p->concurrent);
	statuses_apart(b, &p->not_processed, "not_processed", &p->definite, "definite");
	statuses_apart(b, &p->concurrent, "concurrent", &p->definite, "definite");
	statuses_apart(b, &p->concurrent, "concurrent", &p->not_processed, "not_processed");
	read_lookup(b, p);
}

/* ---- the document ---- */

static void
put_str(struct canon_writer *w, const char *key, const struct node *n)
{
	if (n == NULL)
		return;
	put_key(w, key);
	canon_str(w, n->text);
}

static void
put_words(struct builder *b, struct canon_writer *w, const char *key, const struct node *list)
{
	if (list == NULL)
		return;
	put_key(w, key);
	canon_array_begin(w);
	if (list->first == NULL)
		fault(b, list->at, "%s is empty; name what the field says then", key);
	node_each(n, list)
	{
		(void)value_text(b, n, key, 64);
		canon_str(w, n->text);
	}
	canon_array_end(w);
}

static void
put_lookup(struct builder *b, const struct provider_source *p, struct canon_writer *w)
{
	const struct section *s = &p->lookup;
	const struct term_room room = {.what = "a lookup",
		.hosts = HOSTS_OF_REQUEST |
			 (p->lookup_by == LOOKUP_BY_REFERENCE ? 1U << HOST_REFERENCE : 0)};

	put_key(w, "lookup");
	canon_object_begin(w);
	put_str(w, "by", s->at[KEY_LOOKUP_BY]);
	put_key(w, "consistency_ms");
	canon_u64(w, p->consistency_ms);
	put_words(b, w, "failed", s->at[KEY_LOOKUP_FAILED]);
	put_str(w, "field", s->at[KEY_LOOKUP_FIELD]);
	put_str(w, "list", s->at[KEY_LOOKUP_LIST]);
	put_key(w, "path");
	path_write(b, &room, s->at[KEY_LOOKUP_PATH], w);
	query_write(b, &room, s->at[KEY_LOOKUP_QUERY], w);
	put_words(b, w, "succeeded", s->at[KEY_LOOKUP_SUCCEEDED]);
	canon_object_end(w);
}

static void
put_capability(struct builder *b, const struct provider_source *p, struct canon_writer *w)
{
	put_key(w, "capability");
	canon_object_begin(w);
	statuses_write(w, "concurrent", &p->concurrent);
	statuses_write(w, "definite", &p->definite);
	if (p->key.node != NULL) {
		put_key(w, "key");
		canon_object_begin(w);
		put_key(w, "format");
		canon_str(w, view_str(key_formats[p->key_format]));
		put_str(w, "header", p->key.at[KEY_KEY_HEADER]);
		canon_object_end(w);
		if (p->key_window_ms != 0) {
			put_key(w, "key_window_ms");
			canon_u64(w, p->key_window_ms);
		}
	}
	if (p->lookup.node != NULL)
		put_lookup(b, p, w);
	statuses_write(w, "not_processed", &p->not_processed);
	canon_object_end(w);
}

void
provider_write(struct builder *b, const struct provider_source *p, struct canon_writer *w)
{
	const struct section *s = &p->s;

	canon_object_begin(w);
	put_str(w, "account", s->at[KEY_PROVIDER_ACCOUNT]);
	if (p->capability.node != NULL)
		put_capability(b, p, w);
	if (p->credential.node != NULL) {
		put_key(w, "credential");
		canon_object_begin(w);
		put_str(w, "header", p->credential.at[KEY_CREDENTIAL_HEADER]);
		put_str(w, "prefix", p->credential.at[KEY_CREDENTIAL_PREFIX]);
		put_str(w, "secret", p->credential.at[KEY_CREDENTIAL_SECRET]);
		canon_object_end(w);
	}
	put_str(w, "environment", s->at[KEY_PROVIDER_ENVIRONMENT]);
	put_key(w, "name");
	canon_str(w, p->node->key);
	put_key(w, "origin");
	canon_object_begin(w);
	put_key(w, "host");
	canon_str(w, p->host);
	put_key(w, "port");
	canon_int(w, p->port);
	put_key(w, "tls");
	canon_bool(w, p->tls);
	canon_object_end(w);
	put_key(w, "response_max");
	canon_u64(w, p->response_max);
	put_str(w, "roots", s->at[KEY_PROVIDER_ROOTS]);
	put_key(w, "timeout_ms");
	canon_u64(w, p->timeout_ms);
	canon_object_end(w);
}

/* Faults of the lookup are told here, once; which parameters it names is told for each operation. */
static void
try_lookup(struct builder *b, const struct provider_source *p)
{
	auto_buf struct buf scratch = {0};
	struct canon_writer w;
	struct err err = {0};

	if (p->lookup.node == NULL)
		return;
	buf_init(&scratch, CANON_BYTES_MAX);
	canon_begin(&w, &scratch);
	canon_object_begin(&w);
	put_lookup(b, p, &w);
	canon_object_end(&w);
	if (canon_end(&w, &err) < 0)
		fault(b, p->lookup.node->at, "the lookup: %s", err.text);
}

void
provider_source_read(struct builder *b, const struct node *n, struct provider_source *ret)
{
	struct provider_source *p = ret;
	unsigned before = b->faults;
	const struct section *s = &p->s;

	*p = (struct provider_source){.node = n,
		.file = b->file,
		.timeout_ms = TIMEOUT_MS,
		.response_max = RESPONSE_BYTES};
	if (!name_ok(n->key))
		fault(b, n->key_at,
			"the name of a provider is 1 to 63 of a-z, 0-9, '.', '_' and '-', a letter "
			"or digit first");
	if (!section_read(b, SECTION_PROVIDER, n, &p->s))
		return;
	if (s->at[KEY_PROVIDER_ORIGIN] != NULL)
		read_origin(b, s->at[KEY_PROVIDER_ORIGIN], p);
	read_address(b, p);
	if (s->at[KEY_PROVIDER_ACCOUNT] != NULL)
		read_account(b, s->at[KEY_PROVIDER_ACCOUNT]);
	value_name(b, s->at[KEY_PROVIDER_ENVIRONMENT], "environment");
	value_name(b, s->at[KEY_PROVIDER_ROOTS], "roots");
	if (s->at[KEY_PROVIDER_ROOTS] != NULL && p->host.n > 0 && !p->tls)
		fault(b, s->at[KEY_PROVIDER_ROOTS]->key_at, "roots are for https; take them away");
	if (s->at[KEY_PROVIDER_TIMEOUT] != NULL)
		(void)value_duration(b, s->at[KEY_PROVIDER_TIMEOUT], "timeout", 1000,
			TIMEOUT_MAX_MS, &p->timeout_ms);
	if (s->at[KEY_PROVIDER_RESPONSE_MAX] != NULL &&
		(unit_bytes(s->at[KEY_PROVIDER_RESPONSE_MAX]->text, &p->response_max) < 0 ||
			p->response_max == 0 || p->response_max > RESPONSE_MAX_BYTES))
		fault(b, s->at[KEY_PROVIDER_RESPONSE_MAX]->at,
			"response_max must be a whole number with KiB or MiB, from 1KiB to 1MiB");
	read_credential(b, p);
	read_capability(b, p);
	if (b->faults == before)
		try_lookup(b, p);
	p->good = b->faults == before;
}

/* ---- finding ---- */

static const char *
provider_name(const void *ctx, size_t i)
{
	const struct builder *b = ctx;

	/* Keys of a document have a NUL behind them. */
	return (const char *)b->provider[i].node->key.p;
}

const struct provider_source *
provider_find(struct builder *b, const struct node *n)
{
	const char *near;

	for (size_t i = 0; i < b->providers; i++)
		if (view_eq(b->provider[i].node->key, n->text))
			return &b->provider[i];
	near = nearest(n->text, provider_name, b, b->providers);
	if (near != NULL)
		fault(b, n->at, "there is no provider \"%.*s\"; write %s", VIEW_ARGS(n->text),
			near);
	else
		fault(b, n->at, "there is no provider \"%.*s\"; describe it below providers",
			VIEW_ARGS(n->text));
	return NULL;
}

/* ---- origins ---- */

static int
origin_compare(const void *a, const void *b)
{
	const struct provider_source *x = *(const struct provider_source *const *)a,
				     *y = *(const struct provider_source *const *)b;
	int d = canon_key_compare(x->host, y->host);

	return d != 0 ? d : (x->port > y->port) - (x->port < y->port);
}

static void
origin_write(struct canon_writer *w, const struct provider_source *p)
{
	canon_object_begin(w);
	if (p->address.n > 0) {
		put_key(w, "address");
		canon_str(w, p->address);
	}
	put_key(w, "host");
	canon_str(w, p->host);
	put_key(w, "port");
	canon_int(w, p->port);
	canon_object_end(w);
}

uint32_t
origins_write(struct builder *b, struct buf *out)
{
	const struct provider_source **row auto_free = calloc(
		b->providers + 1, sizeof(const struct provider_source *));
	struct canon_writer w;
	struct err err = {0};
	uint32_t n = 0;

	must(row != NULL);
	for (size_t i = 0; i < b->providers; i++)
		row[i] = &b->provider[i];
	qsort(row, b->providers, sizeof(const struct provider_source *), origin_compare);
	canon_begin(&w, out);
	canon_object_begin(&w);
	put_key(&w, "origins");
	canon_array_begin(&w);
	for (size_t i = 0; i < b->providers; i++) {
		bool again = i > 0 && origin_compare(&row[i - 1], &row[i]) == 0;

		if (again && !view_eq(row[i - 1]->address, row[i]->address)) {
			b->file = row[i]->file;
			fault(b, row[i]->node->key_at,
				"the providers %.*s and %.*s go to the same host and port by "
				"different addresses",
				VIEW_ARGS(row[i - 1]->node->key), VIEW_ARGS(row[i]->node->key));
		} else if (!again) {
			origin_write(&w, row[i]);
			n++;
		}
	}
	canon_array_end(&w);
	canon_object_end(&w);
	if (canon_end(&w, &err) < 0)
		fault(b, (struct place){1, 1}, "the list of origins: %s", err.text);
	return n;
}
