/* SPDX-License-Identifier: Apache-2.0 */
/* Policies, each a file; see policies.h. */
#include "config/policies.h"

#include "config/egress_rule.h"
#include "lib/base/name.h"

#include <stdio.h>

struct policy_source {
	const struct operations_file *file;
	struct section s;
	struct rule_source *rule; /* owned */
	size_t rules;
	const struct node *tenant[POLICY_TENANTS_MAX];
	size_t tenants;
	struct egress budgets;
	bool capture, ipv6;
};

/* Ascending, as the document has them. */
static const struct budget {
	const char *name;
	enum key_id key;
	size_t offset; /* in struct egress */
	uint64_t value, max;
	bool bytes;
} budgets[] = {
	{"brokered", KEY_TASK_BUDGETS_BROKERED, offsetof(struct egress, brokered), 200, 1000000000,
		false},
	{"bytes_in", KEY_TASK_BUDGETS_BYTES_IN, offsetof(struct egress, bytes_in),
		UINT64_C(2) << 30, UINT64_C(1) << 50, true},
	{"bytes_out", KEY_TASK_BUDGETS_BYTES_OUT, offsetof(struct egress, bytes_out), 64 << 20,
		UINT64_C(1) << 50, true},
	{"connections", KEY_TASK_BUDGETS_CONNECTIONS, offsetof(struct egress, connections), 10000,
		1000000000, false},
	{"handshakes", KEY_TASK_BUDGETS_HANDSHAKES, offsetof(struct egress, handshakes), 5000,
		1000000000, false},
	{"names", KEY_TASK_BUDGETS_NAMES, offsetof(struct egress, names), 100, 1000000000, false},
	{"requests", KEY_TASK_BUDGETS_REQUESTS, offsetof(struct egress, requests), 20000,
		1000000000, false},
};

/* ---- reading ---- */

static void
read_budgets(struct builder *b, struct policy_source *p)
{
	const struct node *n = p->s.at[KEY_POLICY_LIMITS];
	struct section s = {.node = NULL};

	if (n != NULL)
		(void)section_read(b, SECTION_TASK_BUDGETS, n, &s);
	for (size_t i = 0; i < ARRAY_LEN(budgets); i++) {
		const struct budget *one = &budgets[i];
		const struct node *at = s.at[one->key];
		uint64_t value = one->value;
		int64_t count = 0;

		if (at != NULL && one->bytes)
			(void)value_bytes(b, at, one->name, 0, one->max, &value);
		else if (at != NULL && value_int(b, at, one->name, 0, (int64_t)one->max, &count))
			value = (uint64_t)count;
		memcpy((char *)&p->budgets + one->offset, &value, sizeof(value));
	}
}

static bool
tenant_ok(struct builder *b, const struct node *n)
{
	unsigned before = b->faults;

	value_name(b, n, "a tenant");
	return b->faults == before;
}

static void
read_tenants(struct builder *b, struct policy_source *p)
{
	const struct node *list = p->s.at[KEY_POLICY_TENANTS];

	if (list == NULL)
		return;
	if (list->first == NULL)
		fault(b, list->at,
			"tenants is empty, so nobody could use this policy; name one, or leave it "
			"out for all");
	p->tenants = texts_sort(b, list, "tenants", tenant_ok, POLICY_TENANTS_MAX, p->tenant);
}

static void
read_switches(struct builder *b, struct policy_source *p)
{
	static const char *const families[] = {"ipv4", "ipv6", NULL};
	const struct node *addresses = p->s.at[KEY_POLICY_ADDRESSES];
	const struct node *capture = p->s.at[KEY_POLICY_CAPTURE];
	unsigned family = 0;

	if (addresses != NULL)
		(void)value_word(b, addresses, "addresses", families, &family);
	if (capture != NULL)
		(void)value_bool(b, capture, "capture", &p->capture);
	p->ipv6 = family == 1;
}

/* ---- what holds between rules ---- */

static void
check_kinds(struct builder *b, const struct policy_source *p, const struct rule_source *late)
{
	for (const struct rule_source *early = p->rule; early < late; early++) {
		if (!early->placed || !late->placed || !rule_conflicts(&early->rule, &late->rule))
			continue;
		if (early->rule.kind == late->rule.kind) {
			fault(b, late->node->at,
				"this rule speaks %s and that of line %u %s at port %u of the same "
				"host; one place has one way of speaking",
				late->rule.tls ? "https" : "http", early->node->at.line,
				early->rule.tls ? "https" : "http", late->rule.port);
			return;
		}
		fault(b, late->node->at,
			"this %s rule meets the %s rule of line %u at port %u of the same host; "
			"one place is of one kind",
			rule_kind_text(late->rule.kind), rule_kind_text(early->rule.kind),
			early->node->at.line, late->rule.port);
		return;
	}
}

static void
check_ports(struct builder *b, const struct policy_source *p)
{
	uint16_t ports[POLICY_PORTS_MAX];
	size_t n = 0;

	for (; p->capture && n < ARRAY_LEN(policy_capture_ports); n++)
		ports[n] = policy_capture_ports[n];
	for (const struct rule_source *r = p->rule; r < p->rule + p->rules; r++) {
		size_t i = 0;

		while (i < n && ports[i] != r->rule.port)
			i++;
		if (i < n || !r->placed)
			continue;
		if (n == POLICY_PORTS_MAX) {
			fault(b, r->node->at,
				"port %u is one more than the %d different ports that a policy can "
				"have",
				r->rule.port, POLICY_PORTS_MAX);
			return;
		}
		ports[n++] = r->rule.port;
	}
}

static void
check_roots(struct builder *b, const struct policy_source *p)
{
	struct view roots[POLICY_ROOTS_MAX];
	size_t n = 0;

	for (const struct rule_source *r = p->rule; r < p->rule + p->rules; r++) {
		size_t i = 0;

		while (i < n && !view_eq(roots[i], r->rule.roots))
			i++;
		if (i < n || r->rule.roots.n == 0)
			continue;
		if (n == POLICY_ROOTS_MAX) {
			fault(b, r->node->at, "a policy can have at most %d different roots",
				POLICY_ROOTS_MAX);
			return;
		}
		roots[n++] = r->rule.roots;
	}
}

static void
read_rules(struct builder *b, struct policy_source *p)
{
	const struct node *list = p->s.at[KEY_POLICY_EGRESS];

	p->rule = calloc(POLICY_RULES_MAX, sizeof(*p->rule));
	must(p->rule != NULL);
	if (list == NULL)
		return;
	node_each(n, list)
	{
		if (p->rules == POLICY_RULES_MAX) {
			fault(b, n->at, "a policy has at most %d rules", POLICY_RULES_MAX);
			break;
		}
		rule_source_read(b, n, &p->rule[p->rules]);
		check_kinds(b, p, &p->rule[p->rules]);
		p->rules++;
	}
	check_ports(b, p);
	check_roots(b, p);
}

/* ---- writing ---- */

static void
put_budgets(const struct policy_source *p, struct canon_writer *w)
{
	put_key(w, "budgets");
	canon_object_begin(w);
	for (size_t i = 0; i < ARRAY_LEN(budgets); i++) {
		uint64_t value;

		memcpy(&value, (const char *)&p->budgets + budgets[i].offset, sizeof(value));
		put_key(w, budgets[i].name);
		canon_u64(w, value);
	}
	canon_object_end(w);
}

static void
put_policy(const struct policy_source *p, const char *name, struct canon_writer *w)
{
	canon_object_begin(w);
	put_budgets(p, w);
	if (p->capture) {
		put_key(w, "capture");
		canon_bool(w, true);
	}
	if (p->ipv6) {
		put_key(w, "ipv6");
		canon_bool(w, true);
	}
	put_key(w, "name");
	canon_str(w, view_str(name));
	put_key(w, "rules");
	canon_array_begin(w);
	for (size_t i = 0; i < p->rules; i++)
		rule_source_write(&p->rule[i], w);
	canon_array_end(w);
	if (p->tenants > 0) {
		put_key(w, "tenants");
		canon_array_begin(w);
		for (size_t i = 0; i < p->tenants; i++)
			canon_str(w, p->tenant[i]->text);
		canon_array_end(w);
	}
	put_key(w, "v");
	canon_int(w, 1);
	canon_object_end(w);
}

/* The reader of everybody who decides: what it refuses is a fault. */
static void
read_back(struct builder *b, const struct buf *document)
{
	struct policy *p = calloc(1, sizeof(*p));
	struct err err = {0};

	must(p != NULL);
	if (policy_read(buf_view(document), p, &err) < 0)
		fault(b, (struct place){1, 1}, "%s", err.text);
	free(p);
}

static void
write_policy(struct builder *b, const struct policy_source *p, struct compiled_policy *ret)
{
	struct canon_writer w;
	struct err err = {0};

	canon_begin(&w, &ret->document);
	put_policy(p, ret->name, &w);
	if (canon_end(&w, &err) < 0)
		fault(b, (struct place){1, 1}, "the policy as a whole: %s", err.text);
	else
		read_back(b, &ret->document);
}

/* ---- files ---- */

/* NAME.yaml is the policy NAME. */
static void
take_name(struct builder *b, const char *file, struct compiled_policy *ret)
{
	size_t n = strlen(file), suffix = strlen(".yaml");
	struct view name = view_of(file, n > suffix ? n - suffix : 0);

	if (!name_ok(name) || strcmp(file + name.n, ".yaml") != 0) {
		fault(b, (struct place){1, 1},
			"the file of a policy is called NAME.yaml; NAME has a-z, 0-9, '.', '_' and "
			"'-', a letter or digit first");
		return;
	}
	if (view_is(name, "none"))
		fault(b, (struct place){1, 1},
			"no policy is called none: that is the word for no policy; rename the "
			"file");
	(void)snprintf(ret->name, sizeof(ret->name), "%.*s", VIEW_ARGS(name));
}

static void
on_document_fault(void *ctx, struct place at, const char *text)
{
	fault(ctx, at, "%s", text);
}

static void
compile_one(struct builder *b, const struct operations_file *file, struct compiled_policy *ret)
{
	const struct document_sink sink = {.ctx = b, .on_fault = on_document_fault};
	struct policy_source p = {.file = file};
	struct document document auto_document;
	unsigned before = b->faults;

	b->file = file->name;
	take_name(b, file->name, ret);
	if (document_read(file->text, &document, &sink) > 0)
		return;
	if (document.root == NULL) {
		fault(b, (struct place){1, 1},
			"the file is empty; a policy that lets nothing through is egress: []");
		return;
	}
	if (!section_read(b, SECTION_POLICY, document.root, &p.s))
		return;
	read_tenants(b, &p);
	read_switches(b, &p); /* ports of capture count */
	read_rules(b, &p);
	read_budgets(b, &p);
	if (b->faults == before)
		write_policy(b, &p, ret);
	free(p.rule);
}

static int
by_name(const void *a, const void *b)
{
	const struct compiled_policy *x = a, *y = b;

	return strcmp(x->name, y->name);
}

unsigned
policies_compile(const struct operations_file *files, size_t n, struct policies_compiled *ret,
	const struct operations_sink *sink)
{
	struct builder b = {.sink = sink, .file = ""};

	*ret = (struct policies_compiled){.n = 0};
	must(n <= POLICIES_MAX);
	for (; ret->n < n; ret->n++) {
		struct compiled_policy *row = &ret->row[ret->n];

		buf_init(&row->document, POLICY_BYTES_MAX);
		compile_one(&b, &files[ret->n], row);
	}
	/* "a-b.yaml" comes before "a.yaml", and "a" before "a-b". */
	qsort(ret->row, ret->n, sizeof(ret->row[0]), by_name);
	return b.faults;
}

void
policies_compiled_done(struct policies_compiled *p)
{
	for (size_t i = 0; i < p->n; i++)
		buf_done(&p->row[i].document);
	p->n = 0;
}
