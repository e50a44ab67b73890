/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of operations: the exact document, every fault with its place and words (faults.def), names across files, and what
 * the compiled operation then does in lib/action.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/operations.h"
#include "lib/action/condition.h"
#include "lib/action/operation.h"
#include "lib/action/request.h"
#include "lib/action/schema.h"
#include "sample.h"

#include <stdio.h>

struct told {
	char text[32768];
	size_t n;
	unsigned faults;
};

static void
on_fault(void *ctx, const char *file, struct place at, const char *text)
{
	struct told *t = ctx;

	t->faults++;
	if (t->n < sizeof(t->text))
		t->n += (size_t)snprintf(t->text + t->n, sizeof(t->text) - t->n, "%s%s%u:%u: %s\n",
			file, file[0] == '\0' ? "" : ":", at.line, at.column, text);
}

static unsigned
compile_files(const struct operations_file *files, size_t n, struct operations *ret, struct told *t)
{
	const struct operations_sink sink = {.ctx = t, .on_fault = on_fault};
	unsigned faults;

	*t = (struct told){.n = 0};
	faults = operations_compile(files, n, ret, &sink);
	assert_true(faults == t->faults || faults > OPERATIONS_FAULTS_MAX);
	return faults;
}

static unsigned
compile_text(const char *text, struct operations *ret, struct told *t)
{
	const struct operations_file file = {"", view_str(text)};

	return compile_files(&file, 1, ret, t);
}

/* The catalogue with one document. */
static struct operation
only_operation(const struct operations *o)
{
	struct operation op = {0};
	struct err err = {0};

	assert_int_equal(o->noperations, 1);
	assert_true(o->catalogue.n > 4);
	if (operation_read(view_of(o->catalogue.p + 4, o->catalogue.n - 4), &op, &err) < 0)
		fail_msg("%s", err.text);
	return op;
}

/* ---- the document ---- */

static void
the_sample_is_exactly_this_document(void **state)
{
	static struct told t;
	auto_operations struct operations o;
	struct operation op;
	const char *expected;

	(void)state;
	if (compile_text(file_text("sample.yaml"), &o, &t) != 0)
		fail_msg("%s", t.text);
	op = only_operation(&o);
	expected = file_text("sample.json");
	if (!view_is(op.document, expected))
		fail_msg("%.*s", (int)op.document.n, (const char *)op.document.p);
	assert_int_equal(o.norigins, 2);
	assert_true(view_is(buf_view(&o.origins),
		"{\"origins\":[{\"host\":\"api.payments.example\",\"port\":443},{\"address\":"
		"\"127.0.0.1\",\"host\":\"orders.example\",\"port\":8080}]}"));
}

static void
the_sample_means_what_it_says(void **state)
{
	static struct told t;
	auto_operations struct operations o;
	auto_buf struct buf arguments, defaulted;
	struct request_values values = {.tenant = view_str("acme"),
		.task = view_str("tk_0000000000000000"),
		.key = view_str("dml-1")};
	struct request request = {0};
	struct operation op;
	struct err err = {0};

	(void)state;
	assert_int_equal(compile_text(file_text("sample.yaml"), &o, &t), 0);
	op = only_operation(&o);
	assert_int_equal(op.effect, EFFECT_IRREVERSIBLE);
	assert_int_equal(operation_tier(&op, 5000)->quorum, 1);
	assert_int_equal(operation_tier(&op, 5001)->quorum, 2);
	assert_true(view_is(operation_tier(&op, 5001)->role[0], "finance"));
	assert_int_equal(op.dispatch_within_ms, 600000);
	assert_int_equal(op.exponent, 2);
	assert_int_equal(op.provider.capability.consistency_ms, 30000);
	assert_int_equal(op.provider.capability.key_window_ms, 86400000);
	assert_true(
		codes_have(&op.success, 201) && codes_have(&op.provider.capability.definite, 422));
	assert_true(view_is(op.provider.credential_prefix, "Bearer "));
	assert_false(op.verify_provider.tls);

	buf_init(&arguments, ARGUMENTS_BYTES_MAX);
	buf_init(&defaulted, 4096);
	if (schema_apply(&op, view_str("{\"cents\":4200,\"order_id\":\"48221\"}"), &arguments,
		    &defaulted, &err) < 0)
		fail_msg("%s", err.text);
	values.arguments = buf_view(&arguments);
	assert_int_equal(request_render(&op, &values, &request, &err), 0);
	assert_true(view_is(
		buf_view(&request.url), "https://api.payments.example/v1/orders/48221/refunds"));
	assert_true(view_is(buf_view(&request.body),
		"{\"amount\":4200,\"currency\":\"EUR\",\"reason\":\"other\",\"metadata\":{\"task\":"
		"\"tk_0000000000000000\"}}"));
	request_done(&request);
	assert_int_equal(request_render_verify(&op, &values, &request, &err), 0);
	assert_true(view_is(buf_view(&request.url),
		"http://orders.example:8080/v1/orders/48221?expand=customer"));
	request_done(&request);
	assert_int_equal(request_render_lookup(&op, &values, &request, &err), 0);
	assert_true(view_is(buf_view(&request.url),
		"https://api.payments.example/v1/refunds?idempotency_key=dml-1"));
	request_done(&request);
}

/* ---- faults ---- */

static void
every_fault_is_told_at_its_place(void **state)
{
	static const struct {
		const char *from, *to, *told;
	} rows[] = {
#define FAULT(from, to, told) {from, to, told},
#include "faults.def"
#undef FAULT
	};
	unsigned wrong = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		static struct told t;
		auto_operations struct operations o;
		char *text auto_free = file_changed("sample.yaml", rows[i].from, rows[i].to);
		unsigned faults = compile_text(text, &o, &t);

		if (faults > 0 && strcmp(t.text, rows[i].told) == 0)
			continue;
		print_error("%s -> %s\n told: %s wanted: %s", rows[i].from, rows[i].to, t.text,
			rows[i].told);
		wrong++;
	}
	assert_int_equal(wrong, 0);
}

static const char provider_text[] =
	"providers:\n  one: {origin: https://one.example, account: a, environment: e}\n";
static void
names_are_found_across_files(void **state)
{
	static struct told t;
	auto_operations struct operations o;
	char first[512], second[512];

	(void)state;
	(void)snprintf(first, sizeof(first),
		"operations:\n  zeta:\n    version: 1\n    effect: external\n    describe: d\n"
		"    parameters: {a: {type: boolean}}\n"
		"    request: {provider: one, method: POST, path: /z, success: [200]}\n"
		"  alpha:\n    version: 1\n    effect: external\n    describe: d\n"
		"    parameters: {a: {type: boolean}}\n"
		"    request: {provider: one, method: POST, path: /a, success: [200]}\n");
	const struct operations_file good[] = {
		{"a.yaml", view_str(first)}, {"b.yaml", view_str(provider_text)}};

	if (compile_files(good, 2, &o, &t) != 0)
		fail_msg("%s", t.text);
	assert_int_equal(o.noperations, 2);
	/* Sorted, whatever the order in the file. */
	assert_true(memmem(o.catalogue.p, o.catalogue.n, "alpha", 5) <
		    memmem(o.catalogue.p, o.catalogue.n, "zeta", 4));
	operations_done(&o);

	(void)snprintf(second, sizeof(second), "%s%s", provider_text,
		"operations:\n  zeta:\n    version: 2\n    effect: external\n    describe: d\n"
		"    parameters: {a: {type: boolean}}\n"
		"    request: {provider: one, method: POST, path: /z, success: [200]}\n");
	const struct operations_file twice[] = {{"a.yaml", view_str(first)},
		{"b.yaml", view_str(provider_text)}, {"c.yaml", view_str(second)}};

	assert_int_equal(compile_files(twice, 3, &o, &t), 2);
	assert_string_equal(t.text,
		"c.yaml:2:3: the provider one stands in b.yaml too (line 2); keep one\n"
		"c.yaml:4:3: the operation zeta stands in a.yaml too (line 2); keep one\n");
}

static void
one_origin_has_one_address(void **state)
{
	static struct told t;
	auto_operations struct operations o;
	static const char one[] =
		"providers:\n"
		"  a: {origin: https://x.example, address: 10.0.0.5, account: a, environment: e}\n"
		"  b: {origin: https://x.example, address: 10.0.0.5, account: b, environment: e}\n"
		"  c: {origin: https://x.example:444, address: 10.0.0.6, account: b, environment: "
		"e}\n"
		"  d: {origin: https://w.example, account: b, environment: e}\n";
	static const char other[] = "providers:\n"
				    "  z: {origin: \"https://x.example:443\", address: 10.0.0.7, "
				    "account: z, environment: "
				    "e}\n";
	const struct operations_file files[] = {
		{"a.yaml", view_str(one)}, {"b.yaml", view_str(other)}};

	(void)state;
	if (compile_files(files, 1, &o, &t) != 0)
		fail_msg("%s", t.text);
	assert_int_equal(o.norigins, 3);
	assert_true(view_is(buf_view(&o.origins), "{\"origins\":[{\"host\":\"w.example\",\"port\":"
						  "443},{\"address\":\"10.0.0.5\",\"host\":"
						  "\"x.example\",\"port\":443},{\"address\":\"10.0."
						  "0.6\",\"host\":\"x.example\",\"port\":"
						  "444}]}"));
	operations_done(&o);
	assert_int_equal(compile_files(files, 2, &o, &t), 1);
	assert_non_null(strstr(t.text, "go to the same host and port by different addresses"));
}

static void
nothing_is_an_empty_catalogue(void **state)
{
	static const char *const empty[] = {
		"", "# nothing\n", "---\n", "operations: {}\n", "providers: {}\noperations: {}\n"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(empty); i++) {
		static struct told t;
		auto_operations struct operations o;

		if (compile_text(empty[i], &o, &t) != 0)
			fail_msg("%s", t.text);
		assert_int_equal(o.noperations, 0);
		assert_int_equal(o.catalogue.n, 0);
		assert_true(view_is(buf_view(&o.origins), "{\"origins\":[]}"));
	}
	{
		static struct told t;
		auto_operations struct operations o;

		const struct operations_file none = {"", {NULL, 0}};

		assert_int_equal(compile_files(NULL, 0, &o, &t), 0);
		assert_true(view_is(buf_view(&o.origins), "{\"origins\":[]}"));
		operations_done(&o);
		assert_int_equal(compile_files(&none, 1, &o, &t), 0);
	}
}

static void
not_a_file_of_operations(void **state)
{
	static const char *const bad[] = {"text", "[a]", "- a", "a: b", "operations: []",
		"providers: 1", "operations: {a: }", "operations: {a: []}", "providers: {a: {}}",
		"a: {", "\x01", "operations: {a: 1}\n---\noperations: {}",
		"operations: {refund: {version: 1}}", "providers: {\"\": {}}",
		"providers: {\"a b\": {}}", "\xff\xfe", "operations: \"\xc3\"", "? [a]\n: b",
		"? {a: b}\n: c"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		static struct told t;
		auto_operations struct operations o;

		if (compile_text(bad[i], &o, &t) == 0)
			fail_msg("accepted: %s", bad[i]);
		assert_true(t.n > 0);
	}
}

/* ---- bounds ---- */

static void
there_are_at_most_256_operations(void **state)
{
	(void)state;
	for (unsigned n = 256; n <= 257; n++) {
		static struct told t;
		auto_operations struct operations o;
		auto_buf struct buf text;

		buf_init(&text, TEXT_BYTES);
		buf_add_str(&text, provider_text);
		buf_add_str(&text, "operations:\n");
		for (unsigned i = 0; i < n; i++)
			buf_addf(&text,
				"  op%u: {version: 1, effect: external, describe: d, parameters: "
				"{a: "
				"{type: boolean}}, request: {provider: one, method: POST, path: "
				"/x, "
				"success: [200]}}\n",
				i);
		buf_add_byte(&text, 0);
		assert_int_equal(buf_check(&text), 0);
		if (n == 256) {
			if (compile_text((const char *)text.p, &o, &t) != 0)
				fail_msg("%s", t.text);
		} else {
			assert_int_equal(compile_text((const char *)text.p, &o, &t), 1);
			assert_non_null(strstr(t.text, "there are more than 256 operations"));
		}
	}
}

static void
no_more_than_100_faults_are_told(void **state)
{
	static struct told t;
	auto_operations struct operations o;
	auto_buf struct buf text;

	(void)state;
	buf_init(&text, TEXT_BYTES);
	for (unsigned i = 0; i < 300; i++)
		buf_addf(&text, "x%u: 1\n", i);
	buf_add_byte(&text, 0);
	assert_int_equal(compile_text((const char *)text.p, &o, &t), 300);
	assert_int_equal(t.faults, OPERATIONS_FAULTS_MAX);
}

/* A document of more than 32 KiB, a body that is too deep, too many of everything. */
static void
an_operation_is_bounded(void **state)
{
	static const struct {
		const char *from, *repeat, *last, *told;
		unsigned times;
	} rows[] = {
		{"reason: \"{reason}\", metadata", "f%u: \"{reason}\", ", "metadata",
			"more than 64 values stand here", 64},
		{"      comment: {type", "      p%u: {type: boolean}\n", "      comment: {type",
			"more than 32 parameters stand here", 29},
		{"definite: [422, 400", "%s",
			"definite: [400,401,402,403,404,405,406,407,408,409,410,411,"
			"412,413,414,415,416",
			"definite names more than 16 statuses", 1},
		{"query: {expand: customer", "%s",
			"query: {a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1, j: 1, k: 1, "
			"l: 1, "
			"m: 1, n: 1, o: 1, p: 1, q: 1",
			"query has more than 16 values", 1},
		{"reason: \"{reason}\", metadata", "%s", "x: [[[[[[[[1]]]]]]]], metadata",
			"the body is more than 8 deep", 1},
		{"values: [damaged", "values: [v%u, ", "damaged", "an enum has at most 64 values",
			0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		static struct told t;
		auto_operations struct operations o;
		auto_buf struct buf to;

		buf_init(&to, TEXT_BYTES);
		if (rows[i].times == 0) {
			buf_add_str(&to, "values: [");
			for (unsigned k = 0; k < 64; k++)
				buf_addf(&to, "v%u, ", k);
		} else if (strcmp(rows[i].repeat, "%s") != 0) {
			if (strstr(rows[i].from, "reason") != NULL)
				buf_add_str(&to, "reason: \"{reason}\", ");
			for (unsigned k = 0; k < rows[i].times; k++) {
				char one[64];

				if (strstr(rows[i].repeat, "boolean") != NULL)
					(void)snprintf(one, sizeof(one),
						"      p%u: {type: boolean}\n", k);
				else
					(void)snprintf(one, sizeof(one), "f%u: \"{reason}\", ", k);
				buf_add_str(&to, one);
			}
		}
		buf_add_str(&to, rows[i].last);
		buf_add_byte(&to, 0);
		char *text auto_free = file_changed(
			"sample.yaml", rows[i].from, (const char *)to.p);

		if (compile_text(text, &o, &t) == 0)
			fail_msg("accepted: %s", rows[i].told);
		if (strstr(t.text, rows[i].told) == NULL)
			fail_msg("told: %s wanted: %s", t.text, rows[i].told);
	}
}

static void
a_document_is_at_most_32_kib(void **state)
{
	static struct told t;
	auto_operations struct operations o;
	auto_buf struct buf to;

	(void)state;
	buf_init(&to, TEXT_BYTES);
	buf_add_str(&to, "reason: \"{reason}\", a: \"");
	for (unsigned i = 0; i < 16000; i++)
		buf_add_byte(&to, 'a');
	buf_add_str(&to, "\", b: \"");
	for (unsigned i = 0; i < 16000; i++)
		buf_add_byte(&to, 'b');
	buf_add_str(&to, "\", metadata");
	buf_add_byte(&to, 0);
	char *text auto_free = file_changed(
		"sample.yaml", "reason: \"{reason}\", metadata", (const char *)to.p);

	assert_int_equal(compile_text(text, &o, &t), 1);
	assert_non_null(strstr(t.text, "30:3: the operation has more than 32768 bytes"));
}

/* What a file may be made of, whatever it means. */
static void
a_file_is_bounded(void **state)
{
	static const struct {
		const char *before, *again, *behind, *told;
		unsigned fits, times;
	} rows[] = {
		{"a: ", "[", "", "options are not nested so deep", 14, 17},
		{"a: [", "x,", "]", "this list is longer than can be read", 1024, 1025},
		{"", "a%u: [x, x]\n", "", "this list is longer than can be read", 1024, 1025},
		{"a: [",
			"[x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,"
			"x,x,"
			"x,x],",
			"]", "the file holds more values than can be read", 300, 900},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (unsigned k = 0; k < 2; k++) {
			static struct told t;
			auto_operations struct operations o;
			auto_buf struct buf text;
			unsigned times = k == 0 ? rows[i].fits : rows[i].times;
			bool numbered = strchr(rows[i].again, '%') != NULL;

			buf_init(&text, TEXT_BYTES);
			buf_add_str(&text, rows[i].before);
			for (unsigned j = 0; j < times; j++)
				if (numbered)
					buf_addf(&text, "a%u: [x, x]\n", j);
				else
					buf_add_str(&text, rows[i].again);
			if (rows[i].again[0] == '[' && rows[i].again[1] == '\0')
				for (unsigned j = 0; j < times; j++)
					buf_add_byte(&text, ']');
			buf_add_str(&text, rows[i].behind);
			buf_add_byte(&text, 0);
			assert_int_equal(buf_check(&text), 0);
			assert_int_not_equal(compile_text((const char *)text.p, &o, &t), 0);
			if ((strstr(t.text, rows[i].told) != NULL) != (k == 1))
				fail_msg("%s: %u times told: %s", rows[i].told, times, t.text);
		}
}

/* ---- values ---- */

static void
fixed_text_and_numbers(void **state)
{
	static const struct {
		const char *value, *sent;
	} rows[] = {
		{"plain text", "\"plain text\""},
		{"\"@@handle\"", "\"@handle\""},
		{"\"a@b\"", "\"a@b\""},
		{"\"{{x}}\"", "\"{x}\""},
		{"\"{{cents}}\"", "\"{cents}\""},
		{"\"\"", "\"\""},
		{"12", "12"},
		{"-12", "-12"},
		{"\"12\"", "\"12\""},
		{"true", "true"},
		{"'true'", "\"true\""},
		{"\"a\\nb\"", "\"a\\nb\""},
		{"2026-11-29", "\"2026-11-29\""},
		{"1.2.3", "\"1.2.3\""},
		{"[1, a, \"{cents}\"]", "[1,\"a\",4200]"},
		{"\"@tenant\"", "\"acme\""},
		{"{\"k k\": 1, a: {b: false}}", "{\"k k\":1,\"a\":{\"b\":false}}"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		static struct told t;
		auto_operations struct operations o;
		char *text auto_free = file_changed("sample.yaml",
			"body: {amount: \"{cents}\", currency: EUR, reason: "
			"\"{reason}\", metadata: {task: "
			"\"@task\", note: \"{comment}\"}}",
			"body: {v: VALUE}");
		auto_buf struct buf whole;
		const char *at = strstr(text, "VALUE");
		struct request_values values = {
			.arguments = view_str(
				"{\"cents\":4200,\"order_id\":\"48221\",\"reason\":\"other\"}"),
			.tenant = view_str("acme")};
		struct request request = {0};
		struct operation op;
		struct err err = {0};
		char expected[256];

		buf_init(&whole, TEXT_BYTES);
		buf_add(&whole, text, (size_t)(at - text));
		buf_add_str(&whole, rows[i].value);
		buf_add_str(&whole, at + 5);
		buf_add_byte(&whole, 0);
		if (compile_text((const char *)whole.p, &o, &t) != 0)
			fail_msg("%s: %s", rows[i].value, t.text);
		op = only_operation(&o);
		if (request_render(&op, &values, &request, &err) < 0)
			fail_msg("%s: %s", rows[i].value, err.text);
		(void)snprintf(expected, sizeof(expected), "{\"v\":%s}", rows[i].sent);
		if (!view_is(buf_view(&request.body), expected))
			fail_msg("%s became %.*s", rows[i].value, (int)request.body.n,
				(const char *)request.body.p);
		request_done(&request);
	}
}

/* What a file says and what a grant would say in the same words decide alike. */
static void
conditions_mean_what_their_text_means(void **state)
{
	static const char *const conditions[] = {"order.tenant == @tenant",
		"order.tenant = @tenant", "order.tenant != @tenant", "order.tenant==\"acme\"",
		"order.tenant == acme", "order.tenant == other", "order.tenant == @task",
		"order.paid_cents >= cents", "order.paid_cents > cents",
		"order.paid_cents <= cents", "order.paid_cents < 9999", "order.paid_cents == 4200",
		"order.paid_cents == \"4200\"", "order.status in [paid, shipped]",
		"order.status in [ \"paid\" ,x]", "order.status in[other]", "cents <= 4200",
		"  cents < 4200  ", "reason in [other]", "reason != damaged",
		"order.status == reason", "order.status == \"reason\"", "order.status == true",
		"cents in [1, 4200]", "order_id == \"48221\"", "comment == absent"};
	static const struct {
		const char *arguments, *facts;
	} worlds[] = {
#define ARGUMENTS "{\"cents\":4200,\"order_id\":\"48221\",\"reason\":\"other\"}"
		{ARGUMENTS,
			"{\"order__paid_cents\":4200,\"order__status\":\"paid\",\"order__tenant\":"
			"\"acme\"}"},
		{ARGUMENTS,
			"{\"order__paid_cents\":4199,\"order__status\":\"other\",\"order__tenant\":"
			"\"tk_0000000000000000\"}"},
		{ARGUMENTS, "{\"order__paid_cents\":9999,\"order__status\":true,\"order__tenant\":"
			    "\"other\"}"},
		{"{\"cents\":4199,\"comment\":\"absent\",\"order_id\":\"1\",\"reason\":"
		 "\"damaged\"}",
			"{\"order__status\":\"reason\"}"},
#undef ARGUMENTS
	};
	unsigned held[2] = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(conditions); i++) {
		static struct told t;
		auto_operations struct operations o;
		char to[256], where[260];
		struct operation op;

		(void)snprintf(to, sizeof(to), "require: ['%s']", conditions[i]);
		char *text auto_free = file_changed("sample.yaml",
			"require: [\"order.tenant == @tenant\", \"order.paid_cents >= cents\", "
			"\"order.status in [paid, shipped]\"]",
			to);

		if (compile_text(text, &o, &t) != 0)
			fail_msg("%s: %s", conditions[i], t.text);
		op = only_operation(&o);
		(void)snprintf(where, sizeof(where), "%s", conditions[i]);
		for (size_t k = 0; k < ARRAY_LEN(worlds); k++) {
			struct condition_world w = {.op = &op,
				.arguments = view_str(worlds[k].arguments),
				.facts = view_str(worlds[k].facts),
				.tenant = view_str("acme"),
				.task = view_str("tk_0000000000000000")};
			struct err err = {0}, unused = {0};
			int of_document = conditions_hold(&w, &err);
			int of_text = conditions_hold_text(
				&w, view_of(where, strlen(where) + 1), &unused);

			if (of_document != of_text)
				fail_msg("%s: %d in the document (%s), %d as text (%s)",
					conditions[i], of_document, err.text, of_text, unused.text);
			held[of_document == 0 ? 1 : 0]++;
		}
	}
	assert_true(held[0] > 20 && held[1] > 20);
}

static void
currencies_have_their_digits(void **state)
{
	static const struct {
		const char *to;
		uint32_t exponent;
	} rows[] = {{"currency: EUR}\n    verify", 2}, {"currency: JPY}\n    verify", 0},
		{"currency: KWD}\n    verify", 3}, {"currency: JPY, exponent: 2}\n    verify", 2}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		static struct told t;
		auto_operations struct operations o;
		char *text auto_free = file_changed(
			"sample.yaml", "currency: EUR}\n    verify", rows[i].to);

		assert_int_equal(compile_text(text, &o, &t), 0);
		assert_int_equal(only_operation(&o).exponent, rows[i].exponent);
	}
}

/* ---- what people read ---- */

static void
the_manual_names_each_key(void **state)
{
	static const char *const keys[] = {
#define SECTION(id, what, where)
#define KEY(section, id, name, kind, need, prose) name,
#include "config/keys.def"
#undef SECTION
#undef KEY
	};
	const char *page = file_text("../../../docs/man/demilune-operations.5.scd");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		char escaped[64] = "*";
		size_t n = 1;

		for (const char *c = keys[i]; *c != '\0'; c++) {
			if (*c == '_')
				escaped[n++] = '\\';
			escaped[n++] = *c;
		}
		escaped[n] = '*';
		if (strstr(page, escaped) == NULL)
			fail_msg("demilune-operations(5) does not name %s", escaped);
	}
}

/* The fenced blocks of YAML of a page are one directory: each is a file. */
static void
blocks_compile(const char *page, size_t least)
{
	static struct told t;
	auto_operations struct operations o;
	struct operations_file files[OPERATIONS_FILES_MAX];
	const char *at = file_text(page);
	size_t n = 0;

	while ((at = strstr(at, "```yaml\n")) != NULL) {
		const char *begin = at + 8, *end = strstr(begin, "\n```");

		assert_non_null(end);
		files[n++] = (struct operations_file){
			page, view_of(begin, (size_t)(end - begin) + 1)};
		at = end + 4;
	}
	assert_true(n >= least);
	if (compile_files(files, n, &o, &t) != 0)
		fail_msg("%s", t.text);
	assert_true(o.noperations > 0);
}

static void
the_operations_of_the_guide_compile(void **state)
{
	(void)state;
	blocks_compile("../../../docs/guide/operations.md", 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sample_is_exactly_this_document),
		cmocka_unit_test(the_sample_means_what_it_says),
		cmocka_unit_test(every_fault_is_told_at_its_place),
		cmocka_unit_test(names_are_found_across_files),
		cmocka_unit_test(one_origin_has_one_address),
		cmocka_unit_test(nothing_is_an_empty_catalogue),
		cmocka_unit_test(not_a_file_of_operations),
		cmocka_unit_test(there_are_at_most_256_operations),
		cmocka_unit_test(no_more_than_100_faults_are_told),
		cmocka_unit_test(an_operation_is_bounded),
		cmocka_unit_test(a_document_is_at_most_32_kib),
		cmocka_unit_test(a_file_is_bounded),
		cmocka_unit_test(fixed_text_and_numbers),
		cmocka_unit_test(conditions_mean_what_their_text_means),
		cmocka_unit_test(currencies_have_their_digits),
		cmocka_unit_test(the_manual_names_each_key),
		cmocka_unit_test(the_operations_of_the_guide_compile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
