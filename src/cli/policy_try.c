/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `demilune policy try`: the decision about one request, with the functions that the gateway calls, step by step. Nothing is resolved and nothing is
 * sent; so the address behind a name, the server's certificate and what is left of a budget are judged only when it is sent, and that is said.
 */
#include "cli/answer.h"
#include "cli/policy.h"
#include "lib/egress/rules.h"
#include "lib/http/path.h"
#include "lib/http/target.h"

#include <errno.h>

enum { EXIT_REFUSED = 1, STEPS_MAX = POLICY_RULES_MAX * EGRESS_STEPS };

struct trial {
	const struct policy *p; /* borrowed */
	struct view text;       /* as it was given */
	enum http_method method;
	bool url; /* else NAME:PORT, of which nothing more is known */
	struct http_target target;
	struct http_authority at;
	struct egress_place place;
	uint8_t *memory; /* owned: what params points into */
	struct http_params params;
	struct egress_decision decision;
	const char *sentence; /* why it is refused, or NULL for the one of the reason */
	struct {
		uint16_t rule;
		bool holds;
		enum egress_step step;
	} step[STEPS_MAX];
	size_t steps;
};

static void
on_step(void *owner, size_t rule, enum egress_step step, bool holds)
{
	struct trial *t = owner;

	must(t->steps < STEPS_MAX);
	t->step[t->steps].rule = (uint16_t)rule;
	t->step[t->steps].step = step;
	t->step[t->steps++].holds = holds;
}

/* ---- the request ---- */

/* Refused before any rule is looked at, for what the codec found. */
static bool
refuse_as(struct trial *t, enum http_reason why)
{
	enum egress_reason reason = EGRESS_REASON_URL_SYNTAX;

	if (why == HTTP_FINE)
		return true;
	if (egress_reason_parse(view_str(http_reason_code(why)), &reason) < 0)
		reason = EGRESS_REASON_URL_SYNTAX;
	t->decision = (struct egress_decision){.reason = reason, .rule = EGRESS_NO_RULE};
	t->sentence = http_reason_text(why);
	return false;
}

static bool
read_url(struct trial *t)
{
	enum { PORT_HTTP = 80, PORT_HTTPS = 443 };

	if (!refuse_as(t, http_target_parse(t->text, t->method, HTTP_AUTHORITY_IP, &t->target)))
		return false;
	if (t->target.form != HTTP_FORM_ABSOLUTE)
		return refuse_as(t, HTTP_NO_URL);
	t->at = t->target.authority;
	if (t->at.port == 0)
		t->at.port = t->target.https ? PORT_HTTPS : PORT_HTTP;
	t->place.scheme = t->target.https ? EGRESS_SCHEME_HTTPS : EGRESS_SCHEME_HTTP;
	return !t->target.has_query ||
	       refuse_as(t, http_query_parse(t->target.query, 0, t->memory, &t->params));
}

/* False: it is refused already. */
static bool
read_request(struct trial *t)
{
	t->url = memmem(t->text.p, t->text.n, "://", 3) != NULL;
	if (t->url && !read_url(t)) {
		if (t->decision.reason == EGRESS_REASON_SCHEME)
			t->sentence = "only http and https have URLs; try other protocols as "
				      "NAME:PORT";
		return false;
	}
	if (!t->url && !refuse_as(t, http_authority_parse(t->text, HTTP_AUTHORITY_IP, &t->at)))
		return false;
	if (t->at.port == 0) {
		(void)refuse_as(t, HTTP_NO_URL);
		t->sentence = "what is tried is https://NAME/PATH, http://NAME/PATH or NAME:PORT";
		return false;
	}
	t->place.name = view_of(t->at.host, t->at.n);
	t->place.port = t->at.port;
	return true;
}

/* ---- the decision ---- */

static uint16_t
first_of(rule_set set)
{
	return (uint16_t)__builtin_ctzll(set);
}

static bool
is_opaque(const struct rule *r)
{
	return r->kind == RULE_KIND_TCP || r->kind == RULE_KIND_PASSTHROUGH;
}

static void
decide(struct trial *t)
{
	const struct rules_trace trace = {.step = on_step, .owner = t};
	struct egress_request q = {.method = t->method,
		.path = t->target.path,
		.has_query = t->target.has_query,
		.query = t->target.has_query ? &t->params : NULL};
	rule_set set = 0;

	t->decision = (struct egress_decision){.rule = EGRESS_NO_RULE};
	t->decision.reason = rules_place(t->p, &t->place, &set, &trace);
	if (t->decision.reason != EGRESS_REASON_NONE)
		return;
	t->decision.rule = first_of(set);
	if (is_opaque(&t->p->rule[t->decision.rule]))
		return;
	if (t->url) {
		rules_request(t->p, set, &q, &trace, &t->decision);
		return;
	}
	t->decision.reason = EGRESS_REASON_NOT_HTTP;
	t->sentence = "the rule for this place looks at requests: try a URL";
}

/* ---- words ---- */

static const char *
sentence(const struct trial *t)
{
	return t->sentence != NULL ? t->sentence : egress_reason_says(t->decision.reason);
}

/* A word that YAML takes for nothing but a word. */
static bool
is_word(struct view v)
{
	for (size_t i = 0; i < v.n; i++) {
		uint8_t c = v.p[i] | 0x20;

		bool inner = v.p[i] == '_' || (v.p[i] >= '0' && v.p[i] <= '9');

		if (!(c >= 'a' && c <= 'z') && (i == 0 || !inner))
			return false;
	}
	return v.n > 0;
}

/* Whether some fetch rule could take the request: another kind has the place, an address is not to be opened by a hint, or what is asked has two readings. */
static bool
can_be_fetched(const struct trial *t)
{
	enum egress_reason reason = t->decision.reason;
	bool mine = t->decision.rule == EGRESS_NO_RULE ||
		    t->p->rule[t->decision.rule].kind == RULE_KIND_FETCH;

	for (unsigned i = 0; i < t->params.n; i++)
		mine = mine && is_word(t->params.param[i].name) &&
		       !egress_parameter_is_credential(t->params.param[i].name);
	return mine && !view_has(t->target.path, '*') &&
	       http_path_judge(t->target.path, 0) == HTTP_FINE &&
	       (reason == EGRESS_REASON_NO_RULE || reason == EGRESS_REASON_PORT ||
		       reason == EGRESS_REASON_METHOD || reason == EGRESS_REASON_PATH ||
		       reason == EGRESS_REASON_QUERY);
}

/* A rule that would take the request, as a line of a policy; nothing where there is none. */
static void
add_wanted(struct buf *b, const struct trial *t)
{
	bool body = t->method == HTTP_POST || t->method == HTTP_PUT || t->method == HTTP_PATCH;

	if (!t->url && t->decision.reason == EGRESS_REASON_NO_RULE && t->at.kind == HTTP_HOST_NAME)
		buf_addf(b, "- tcp: {name: %s, port: %u}", t->at.host, t->at.port);
	if (!t->url || !can_be_fetched(t))
		return;
	buf_addf(b, "- fetch: {url: \"%s://%s", t->target.https ? "https" : "http", t->at.host);
	if (t->target.authority.port != 0)
		buf_addf(b, ":%u", t->target.authority.port);
	buf_addf(
		b, "%.*s\", methods: [%s]", VIEW_ARGS(t->target.path), http_method_name(t->method));
	for (unsigned i = 0; i < t->params.n; i++)
		buf_addf(b, "%s%.*s", i == 0 ? ", query: [" : ", ",
			VIEW_ARGS(t->params.param[i].name));
	buf_add_str(b, t->params.n > 0 ? "]" : "");
	buf_add_str(b, body ? ", request_max: 64KiB}" : "}");
}

static int
print_steps(const struct trial *t, struct err *err)
{
	static const struct table_column columns[] = {
		{"RULE", true, 0}, {"WHAT MUST HOLD", false, 0}, {"HOLDS", false, 0}};
	auto_table struct table table;

	table_init(&table, columns, ARRAY_LEN(columns));
	for (size_t i = 0; i < t->p->nrules; i++)
		for (size_t s = 0; s < t->steps; s++) {
			bool holds = t->step[s].holds;

			if (t->step[s].rule != i)
				continue;
			table_cellf(&table, "%zu", i + 1);
			table_cell(&table, view_str(egress_step_text(t->step[s].step)));
			table_tone(&table, holds ? TONE_GOOD : TONE_BAD,
				view_str(holds ? "yes" : "no"));
		}
	return table_print(&table, stdout, err);
}

/* What is judged only when it is sent. */
static void
print_later(const struct trial *t, const struct rule *r)
{
	char address[ADDRESS_TEXT];

	if (r->kind == RULE_KIND_BROKERED)
		(void)printf("the program sends no credential: the broker adds %.*s, and only "
			     "the fields of the rule come back\n",
			VIEW_ARGS(r->credential_secret));
	if (r->exact) {
		address_text(&r->address, address);
		(void)printf("nothing was sent; it goes to %s, as the rule says\n", address);
	} else if (t->at.kind == HTTP_HOST_NAME) {
		(void)printf("nothing was sent: which address %s leads to, and whether it is "
			     "one of the public internet, is judged only when it is sent\n",
			t->at.host);
	} else {
		(void)printf("nothing was sent: whether %s is an address of the public internet "
			     "is judged only when it is sent; one that is not needs "
			     "`address: %s` in the rule\n",
			t->at.host, t->at.host);
	}
}

static void
print_allowed(const struct trial *t)
{
	const struct rule *r = &t->p->rule[t->decision.rule];
	auto_buf struct buf name, weak;

	buf_init(&name, POLICY_LINE_BYTES);
	buf_init(&weak, POLICY_LINE_BYTES);
	policy_add_name(&name, r);
	(void)printf(
		"allowed by rule %d (%.*s)\n", t->decision.rule + 1, VIEW_ARGS(buf_view(&name)));
	if (policy_add_weak(&weak, r))
		(void)printf("the rule is weak: %.*s\n", VIEW_ARGS(buf_view(&weak)));
	print_later(t, r);
}

static void
print_refused(const struct trial *t)
{
	auto_buf struct buf name, wanted;

	buf_init(&name, POLICY_LINE_BYTES);
	buf_init(&wanted, POLICY_LINE_BYTES);
	(void)printf("refused: %s: %s\n", egress_reason_text(t->decision.reason), sentence(t));
	if (t->decision.rule != EGRESS_NO_RULE) {
		policy_add_name(&name, &t->p->rule[t->decision.rule]);
		(void)printf("rule %d (%.*s) came nearest\n", t->decision.rule + 1,
			VIEW_ARGS(buf_view(&name)));
	}
	add_wanted(&wanted, t);
	if (wanted.n > 0)
		(void)printf("a rule that would allow it: %.*s\n", VIEW_ARGS(buf_view(&wanted)));
}

static int
print_json(const struct trial *t, struct err *err)
{
	bool allowed = t->decision.reason == EGRESS_REASON_NONE;
	json_t *all auto_json = json_object();
	json_t *steps auto_json = json_array();
	auto_buf struct buf wanted;
	int r = 0;

	buf_init(&wanted, POLICY_LINE_BYTES);
	for (size_t i = 0; i < t->steps; i++)
		r |= json_array_append_new(steps,
			json_pack("{s:i, s:s, s:b}", "rule", t->step[i].rule + 1, "step",
				egress_step_text(t->step[i].step), "holds", (int)t->step[i].holds));
	r |= json_object_set_new(all, "request", json_stringn((const char *)t->text.p, t->text.n));
	r |= json_object_set_new(all, "method", json_string(http_method_name(t->method)));
	r |= json_object_set_new(
		all, "policy", json_stringn((const char *)t->p->name.p, t->p->name.n));
	r |= json_object_set_new(all, "allowed", json_boolean(allowed));
	r |= json_object_set_new(
		all, "reason", json_string(egress_reason_text(t->decision.reason)));
	if (t->decision.rule != EGRESS_NO_RULE)
		r |= json_object_set_new(all, "rule", json_integer(t->decision.rule + 1));
	if (!allowed)
		r |= json_object_set_new(all, "error", json_string(sentence(t)));
	if (!allowed)
		add_wanted(&wanted, t);
	if (wanted.n > 0)
		r |= json_object_set_new(
			all, "would_allow", json_stringn((const char *)wanted.p, wanted.n));
	r |= json_object_set(all, "steps", steps);
	return r != 0 ? err_set(err, -ENOMEM, "the answer cannot be written as JSON")
		      : answer_print(all, err);
}

static int
print(struct cli *cli, const struct trial *t, struct err *err)
{
	int r;

	if (args_has(&cli->args, OPT_JSON))
		return print_json(t, err);
	if (t->steps > 0) {
		r = print_steps(t, err);
		if (r < 0)
			return r;
		(void)putchar('\n');
	}
	if (t->decision.reason == EGRESS_REASON_NONE)
		print_allowed(t);
	else
		print_refused(t);
	return 0;
}

/* ---- the verb ---- */

static int
find_policy(struct cli *cli, struct policy_held *ret, struct err *err)
{
	const char *task = args_text(&cli->args, OPT_TASK);
	const char *name = args_text(&cli->args, OPT_POLICY);
	bool file = cli->args.n_rest == 2;

	if ((task != NULL) + (name != NULL) + file != 1)
		return err_set(err, -EINVAL,
			"by which policy? --task TASK, --policy NAME, or a FILE before the URL");
	if (file)
		return policy_of_file(cli->args.rest[0], ret, err);
	return task != NULL ? policy_of_task(cli, task, ret, err)
			    : policy_of_name(cli, name, ret, err);
}

int
verb_policy_try(struct cli *cli, struct err *err)
{
	const char *method = args_text(&cli->args, OPT_METHOD);
	const char *text = cli->args.rest[cli->args.n_rest - 1];
	auto_policy struct policy_held held = {0};
	uint8_t *memory auto_free = malloc(strlen(text) + 1);
	struct trial *t auto_free = calloc(1, sizeof(*t));
	int r;

	if (t == NULL || memory == NULL)
		return err_set(err, -ENOMEM, "no memory");
	*t = (struct trial){.text = view_str(text), .memory = memory};
	t->method = method == NULL ? HTTP_GET : http_method_of(view_str(method));
	if (t->method == HTTP_METHODS || t->method == HTTP_CONNECT)
		return err_set(
			err, -EINVAL, "-X %.40s: no request of a sandbox has this method", method);
	r = find_policy(cli, &held, err);
	if (r < 0)
		return r;
	t->p = held.p;
	if (read_request(t))
		decide(t);
	r = print(cli, t, err);
	if (r == 0)
		r = answer_done(err);
	return r != 0 ? r : t->decision.reason == EGRESS_REASON_NONE ? 0 : EXIT_REFUSED;
}
