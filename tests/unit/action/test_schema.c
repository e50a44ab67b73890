/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments against parameters. Each row: the parameters of an operation, the arguments of a stranger, and what comes out or the sentence of the
 * refusal. Names of cases are those of the research's list.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/action/schema.h"
#include "tests/unit/action/parsed.h"

#include <errno.h>
#include <stdio.h>

/* Returns the code; *ret_why lives until the next call. */
static int
apply(const struct operation *op, const char *arguments, struct buf *out, struct buf *defaulted,
	const char **ret_why)
{
	static struct err err;
	auto_buf struct buf in = {.max = 1 << 20};
	int e;

	err = (struct err){0};
	quoted(arguments, &in);
	e = schema_apply(op, buf_view(&in), out, defaulted, &err);
	*ret_why = err.text;
	return e;
}

static void
accepts(const struct operation *op, const char *arguments, const char *want)
{
	auto_buf struct buf out = {.max = 1 << 20}, defaulted = {.max = 4096}, w = {.max = 1 << 20};
	const char *why;

	if (apply(op, arguments, &out, &defaulted, &why) != 0)
		fail_msg("%s: %s", arguments, why);
	quoted(want, &w);
	if (!view_eq(buf_view(&out), buf_view(&w)))
		fail_msg("%s became %.*s", arguments, (int)out.n, (const char *)out.p);
}

static void
refuses(const struct operation *op, const char *arguments, const char *sentence)
{
	auto_buf struct buf out = {.max = 1 << 20}, defaulted = {.max = 4096};
	const char *why;
	int e;

	buf_add_str(&out, "kept");
	buf_add_str(&defaulted, "kept");
	e = apply(op, arguments, &out, &defaulted, &why);
	if (e >= 0 || strstr(why, sentence) == NULL)
		fail_msg("%s: %d %s (%s expected)", arguments, e, why, sentence);
	assert_true(view_is(buf_view(&out), "kept"));
	assert_true(view_is(buf_view(&defaulted), "kept"));
}

static void
refund(struct parsed *p)
{
	parse(p, "refund", NULL, NULL);
	assert_int_equal(p->code, 0);
}

static void
A2_an_unknown_argument_is_refused(void **state)
{
	auto_parsed struct parsed p;

	(void)state;
	refund(&p);
	accepts(&p.op, "{'cents':4200,'order_id':'48221','reason':'late'}",
		"{'cents':4200,'order_id':'48221','reason':'late'}");
	refuses(&p.op, "{'approved':true,'cents':4200,'order_id':'48221'}",
		"\"approved\" is not a parameter");
	refuses(&p.op, "{'cents':4200,'cents_paid':1,'order_id':'48221'}",
		"\"cents_paid\" is not a parameter");
	refuses(&p.op, "{'cents':4200,'order_id':'48221','zz':null}", "\"zz\" is not a parameter");
	refuses(&p.op, "{'__proto__':{},'cents':4200,'order_id':'48221'}", "not canonical");
	refuses(&p.op, "{'cents':4200,'memo':{'a':1},'order_id':'48221'}",
		"memo: must be a string");
}

static void
A2_at_any_depth(void **state)
{
	auto_parsed struct parsed p;

	(void)state;
	parse_parameters(&p,
		"{'fields':[{'items':{'fields':[{'max':9,'min':0,'name':'n','type':'integer'}],"
		"'type':'object'},'max':3,'min':1,'name':'list','type':'array'}],"
		"'name':'outer','type':'object'}");
	assert_int_equal(p.code, 0);
	accepts(&p.op, "{'outer':{'list':[{'n':1},{'n':2}]}}",
		"{'outer':{'list':[{'n':1},{'n':2}]}}");
	refuses(&p.op, "{'outer':{'list':[{'n':1},{'m':1,'n':2}]}}",
		"outer: list: entry 1: \"m\" is not a parameter");
	refuses(&p.op, "{'outer':{'list':[{'n':1,'o':2}]}}", "\"o\" is not a parameter");
	refuses(&p.op, "{'outer':{'list':[{'n':1}],'more':2}}", "\"more\" is not a parameter");
	refuses(&p.op, "{'outer':{'list':[{}]}}", "\"n\" is missing");
	refuses(&p.op, "{'outer':{'list':[]}}", "1 to 3 entries");
	refuses(&p.op, "{'outer':{'list':[{'n':1},{'n':1},{'n':1},{'n':1}]}}", "1 to 3 entries");
	refuses(&p.op, "{'outer':{'list':{'n':1}}}", "must be an array");
	refuses(&p.op, "{'outer':[]}", "must be an object");
}

static void
A3_money_is_an_integer(void **state)
{
	static const char *const tokens[] = {"42.00", "4.2e1", "0.42E2", "42e0", "042", "+42",
		"0x2a", "'42'", "[42]", "true", "null", "42.", "Infinity"};
	auto_parsed struct parsed p;

	(void)state;
	refund(&p);
	accepts(&p.op, "{'cents':42,'order_id':'1','reason':'late'}",
		"{'cents':42,'order_id':'1','reason':'late'}");
	for (size_t i = 0; i < ARRAY_LEN(tokens); i++) {
		char text[128];

		(void)snprintf(text, sizeof(text), "{'cents':%s,'order_id':'1'}", tokens[i]);
		refuses(&p.op, text, "");
	}
}

static void
A4_no_number_is_rounded(void **state)
{
	auto_parsed struct parsed p;

	(void)state;
	parse_parameters(
		&p, "{'max':9007199254740991,'min':-9007199254740991,'name':'n','type':'integer'}");
	assert_int_equal(p.code, 0);
	accepts(&p.op, "{'n':9007199254740991}", "{'n':9007199254740991}");
	accepts(&p.op, "{'n':-9007199254740991}", "{'n':-9007199254740991}");
	refuses(&p.op, "{'n':9007199254740992}", "beyond 2^53");
	refuses(&p.op, "{'n':9007199254740993}", "beyond 2^53");
	refuses(&p.op, "{'n':12345678901234567890}", "beyond 2^53");
	parsed_done(&p);
	refund(&p);
	refuses(&p.op, "{'cents':500001,'order_id':'1'}", "from 1 to 500000");
	refuses(&p.op, "{'cents':0,'order_id':'1'}", "from 1 to 500000");
	refuses(&p.op, "{'cents':-1,'order_id':'1'}", "from 1 to 500000");
	parsed_done(&p);
	/* a document's own numbers too */
	parse_parameters(&p, "{'max':9007199254740993,'min':0,'name':'n','type':'integer'}");
	assert_int_equal(p.code, -EINVAL);
}

static void
A6_there_is_no_minus_zero(void **state)
{
	auto_parsed struct parsed p;

	(void)state;
	parse_parameters(&p, "{'max':5,'min':-5,'name':'n','type':'integer'}");
	accepts(&p.op, "{'n':0}", "{'n':0}");
	refuses(&p.op, "{'n':-0}", "shortest form");
}

static void
A9_an_identifier_is_in_NFC_already(void **state)
{
	auto_parsed struct parsed p;

	(void)state;
	parse_parameters(&p,
		"{'identifier':true,'max':40,'min':1,'name':'who','pattern':'[a-z\u00e0-\u00ff]+',"
		"'type':'string'}");
	assert_int_equal(p.code, 0);
	accepts(&p.op, "{'who':'ren\u00e9'}", "{'who':'ren\u00e9'}");
	refuses(&p.op, "{'who':'rene\u0301'}", "is an identifier");
	assert_true(identifier_ok(view_str("ren\u00e9")));
	assert_false(identifier_ok(view_str("rene\u0301")));
	assert_false(identifier_ok(view_str("\u212b")));       /* angstrom: NFC replaces it */
	assert_false(identifier_ok(view_str("\u0387")));       /* Greek ano teleia: so too */
	assert_false(identifier_ok(view_str("\u1100\u1161"))); /* jamo that compose */
	assert_true(identifier_ok(view_str("\uac00")));
	assert_false(identifier_ok(view_str("\uac00\u11a8"))); /* and a final consonant */
	assert_false(identifier_ok(view_str("\uf900")));       /* compatibility ideograph */
	assert_false(identifier_ok(view_str("")));
	assert_false(identifier_ok(view_str("a\xff")));
}

static void
A11_depth_is_bounded(void **state)
{
	auto_buf struct buf deep = {.max = 1 << 20}, out = {.max = 1 << 20}, d = {.max = 4096};
	auto_parsed struct parsed p;
	struct err err;

	(void)state;
	refund(&p);
	for (size_t i = 0; i < 100000; i++)
		buf_add_byte(&deep, '[');
	assert_true(schema_apply(&p.op, buf_view(&deep), &out, &d, &err) < 0);
	assert_true(schema_apply(&p.op, view_of(deep.p, 30000), &out, &d, &err) < 0);
	buf_clear(&deep);
	buf_add_str(&deep, "{\"cents\":");
	for (size_t i = 0; i < 30000; i++)
		buf_add_byte(&deep, '[');
	assert_true(schema_apply(&p.op, buf_view(&deep), &out, &d, &err) < 0);
	assert_non_null(strstr(err.text, "more than 16"));
	parsed_done(&p);
	/* parameters: four inside each other and no more */
	parse_parameters(&p,
		"{'items':{'items':{'items':{'items':{'type':'boolean'},'max':1,'min':0,"
		"'type':'array'},'max':1,'min':0,'type':'array'},'max':1,'min':0,'type':'array'},"
		"'max':1,'min':0,'name':'a','type':'array'}");
	assert_int_equal(p.code, 0);
	accepts(&p.op, "{'a':[[[[true]]]]}", "{'a':[[[[true]]]]}");
	parsed_done(&p);
	parse_parameters(&p,
		"{'items':{'items':{'items':{'items':{'items':{'type':'boolean'},'max':1,'min':0,"
		"'type':'array'},'max':1,'min':0,'type':'array'},'max':1,'min':0,'type':'array'},"
		"'max':1,'min':0,'type':'array'},'max':1,'min':0,'name':'a','type':'array'}");
	assert_int_equal(p.code, -EINVAL);
}

static void
A12_absent_null_and_empty_are_three_things(void **state)
{
	auto_parsed struct parsed p;

	(void)state;
	parse_parameters(&p, "{'max':5,'min':0,'name':'a','type':'string'},"
			     "{'max':5,'min':1,'name':'b','optional':true,'type':'string'}");
	assert_int_equal(p.code, 0);
	accepts(&p.op, "{'a':''}", "{'a':''}");
	accepts(&p.op, "{'a':'','b':'x'}", "{'a':'','b':'x'}");
	refuses(&p.op, "{'a':null}", "a: must be a string");
	refuses(&p.op, "{'a':'','b':null}", "b: must be a string");
	refuses(&p.op, "{'a':'','b':''}", "b: must have 1 to 5 bytes");
	refuses(&p.op, "{'b':'x'}", "\"a\" is missing");
	refuses(&p.op, "{}", "\"a\" is missing");
	refuses(&p.op, "null", "object is expected");
	refuses(&p.op, "", "");
}

static void
A13_defaults_are_in_the_bytes_and_named(void **state)
{
	auto_buf struct buf out = {.max = 4096}, defaulted = {.max = 4096};
	auto_parsed struct parsed p;
	const char *why;

	(void)state;
	refund(&p);
	assert_int_equal(apply(&p.op, "{'cents':1,'order_id':'2'}", &out, &defaulted, &why), 0);
	assert_true(
		view_is(buf_view(&out), "{\"cents\":1,\"order_id\":\"2\",\"reason\":\"other\"}"));
	assert_true(view_eq(buf_view(&defaulted), view_of("reason", 7)));
	buf_clear(&out);
	buf_clear(&defaulted);
	assert_int_equal(
		apply(&p.op, "{'cents':1,'order_id':'2','reason':'other'}", &out, &defaulted, &why),
		0);
	assert_int_equal(defaulted.n, 0);
	parsed_done(&p);
	/* what is made is accepted again and stays the same */
	refund(&p);
	accepts(&p.op, "{'cents':1,'order_id':'2','reason':'other'}",
		"{'cents':1,'order_id':'2','reason':'other'}");
}

static void
A14_nothing_stands_behind_the_value(void **state)
{
	auto_parsed struct parsed p;

	(void)state;
	refund(&p);
	refuses(&p.op, "{'cents':1,'order_id':'2'} ", "behind the document");
	refuses(&p.op, "{'cents':1,'order_id':'2'}{}", "behind the document");
	refuses(&p.op, "{'cents':1,'order_id':'2'},", "behind the document");
	refuses(&p.op, " {'cents':1,'order_id':'2'}", "canonical");
	refuses(&p.op, "{'order_id':'2','cents':1}", "is missing");
	refuses(&p.op, "{'cents':1,'cents':2,'order_id':'2'}", "twice");
}

static void
B4_letters_that_look_alike_are_refused(void **state)
{
	static const char *const recipients[] = {
		"\u0430nna@example.test",     /* Cyrillic a */
		"anna@ex\u00adample.test",    /* soft hyphen */
		"anna@example\u3002test",     /* ideographic full stop */
		"\uff41nna@example.test",     /* full width */
		"anna@ex\u200bample.test",    /* zero width */
		"anna@example.test\u202e",    /* direction */
		"\U000e0061nna@example.test", /* tag */
	};
	auto_parsed struct parsed p;

	(void)state;
	parse(&p, "reply", NULL, NULL);
	assert_int_equal(p.code, 0);
	accepts(&p.op, "{'body':'x','recipient':'anna@example.test','subject':'y'}",
		"{'body':'x','recipient':'anna@example.test','subject':'y'}");
	for (size_t i = 0; i < ARRAY_LEN(recipients); i++) {
		char text[128];

		(void)snprintf(text, sizeof(text), "{'body':'x','recipient':'%s','subject':'y'}",
			recipients[i]);
		refuses(&p.op, text, "recipient: ");
	}
}

static void
B6_an_address_is_an_address_alone(void **state)
{
	auto_parsed struct parsed p;

	(void)state;
	parse(&p, "reply", NULL, NULL);
	refuses(&p.op, "{'body':'x','recipient':'\\'boss@corp\\' <x@evil>','subject':'y'}",
		"recipient: ");
	refuses(&p.op, "{'body':'x','recipient':'boss@corp<x@evil>','subject':'y'}", "must match");
	refuses(&p.op, "{'body':'x','recipient':'a@b,c@d','subject':'y'}", "must match");
	refuses(&p.op, "{'body':'x','recipient':'a@b c@d','subject':'y'}", "identifier");
}

static void
B7_no_control_character_in_one_line(void **state)
{
	static const char *const bad[] = {"a\\r\\nBcc: x", "a\\n", "\\r", "a\\tb", "\\u0000",
		"\\u001b[2J",
		"a\xc2\x85"
		"b",
		"a\x7f"
		"b",
		"a\u2028b", "a\u2029b",
		"a\xc2\x9b"
		"b"};
	auto_parsed struct parsed p;

	(void)state;
	parse(&p, "reply", NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		char text[128];

		(void)snprintf(text, sizeof(text), "{'body':'x','recipient':'a@b','subject':'%s'}",
			bad[i]);
		refuses(&p.op, text, "subject: must be one line");
	}
	accepts(&p.op, "{'body':'x\\n\\ty','recipient':'a@b','subject':'\u202e fine'}",
		"{'body':'x\\n\\ty','recipient':'a@b','subject':'\u202e fine'}");
	refuses(&p.op, "{'body':'x\\r\\ny','recipient':'a@b','subject':'z'}", "newline and tab");
	refuses(&p.op, "{'body':'\\u001b','recipient':'a@b','subject':'z'}", "newline and tab");
	refuses(&p.op, "{'body':'\\u0000','recipient':'a@b','subject':'z'}", "newline and tab");
}

static void
B9_a_script_is_its_bytes_and_never_a_path(void **state)
{
	static const char *const bad[] = {"'build.sh'",
		"{'path':'/tmp/x','text':'ls','workdir':'/work'}",
		"{'file':'/tmp/x','workdir':'/work'}", "{'text':'ls'}",
		"{'text':'','workdir':'/work'}", "{'text':'ls','workdir':'work'}",
		"{'text':'ls','workdir':'/work/../etc'}", "{'text':'ls','workdir':'/work//x'}",
		"{'text':'ls','workdir':'/a b'}", "{'text':'ls','workdir':'/./a'}",
		"{'text':'ls\\u0000','workdir':'/work'}",
		"{'text':'0123456789012345678901234567890123456789012','workdir':'/work'}"};
	auto_parsed struct parsed p;

	(void)state;
	parse_parameters(&p, "{'max':40,'min':1,'name':'run','type':'script'}");
	assert_int_equal(p.code, 0);
	accepts(&p.op, "{'run':{'text':'make\\n','workdir':'/work'}}",
		"{'run':{'text':'make\\n','workdir':'/work'}}");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		char text[128];

		(void)snprintf(text, sizeof(text), "{'run':%s}", bad[i]);
		refuses(&p.op, text, "run: ");
	}
}

static void
E1_invisible_characters_are_no_identifier(void **state)
{
	static const char *const bad[] = {"\u202a", "\u202b", "\u202c", "\u202d", "\u202e",
		"\u2066", "\u2067", "\u2068", "\u2069", "\u200b", "\u200c", "\u200d", "\u200e",
		"\u200f", "\u2060", "\ufeff", "\u00ad", "\u061c", "\u180e", "\U000e0041",
		"\U000e007f", "\ue000", "\U000f0000", "\u0301", "\u3099", "\ufe0f", "\u2028", " ",
		"\u00a0", "\u3000", "\t", "\n", "\x7f", "\xc2\x85", "\ufffe", "\u00d7", "\u00b7"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		char text[16];

		(void)snprintf(text, sizeof(text), "a%sb", bad[i]);
		if (identifier_ok(view_str(text)))
			fail_msg("row %zu is accepted", i);
		assert_false(identifier_ok(view_str(bad[i])));
		assert_false(identifier_ascii(view_str(text)));
	}
	assert_true(identifier_ok(view_str("Anna-1_x@example.test")));
	assert_true(identifier_ok(view_str("\u0410\u043d\u043d\u0430")));
	assert_false(identifier_ascii(view_str("\u0410")));
}

static void
each_type_is_itself(void **state)
{
	auto_parsed struct parsed p;

	(void)state;
	parse_parameters(&p, "{'name':'b','type':'boolean'},"
			     "{'name':'e','type':'enum','values':['x','y']},"
			     "{'max':4,'min':2,'name':'s','pattern':'[a-z]+','type':'string'}");
	assert_int_equal(p.code, 0);
	accepts(&p.op, "{'b':false,'e':'y','s':'abcd'}", "{'b':false,'e':'y','s':'abcd'}");
	refuses(&p.op, "{'b':0,'e':'y','s':'abc'}", "b: must be true or false");
	refuses(&p.op, "{'b':'true','e':'y','s':'abc'}", "b: must be true or false");
	refuses(&p.op, "{'b':true,'e':'z','s':'abc'}", "e: must be one of [\"x\",\"y\"]");
	refuses(&p.op, "{'b':true,'e':'','s':'abc'}", "e: must be one of");
	refuses(&p.op, "{'b':true,'e':true,'s':'abc'}", "e: must be one of");
	refuses(&p.op, "{'b':true,'e':'x','s':'a'}", "s: must have 2 to 4 bytes, has 1");
	refuses(&p.op, "{'b':true,'e':'x','s':'abcde'}", "s: must have 2 to 4 bytes, has 5");
	refuses(&p.op, "{'b':true,'e':'x','s':'ab1'}", "s: must match [a-z]+");
	refuses(&p.op, "{'b':true,'e':'x','s':12}", "s: must be a string");
}

static void
parameters_that_make_no_sense(void **state)
{
	static const char *const bad[] = {
		"{'name':'a','type':'float'}",
		"{'name':'a','type':'string'}",
		"{'max':5,'name':'a','type':'string'}",
		"{'max':1,'min':5,'name':'a','type':'string'}",
		"{'max':16385,'min':1,'name':'a','type':'string'}",
		"{'max':5,'min':-1,'name':'a','type':'string'}",
		"{'max':5,'min':1,'type':'string'}",
		"{'max':5,'min':1,'name':'A','type':'string'}",
		"{'max':5,'min':1,'name':'a','optional':false,'type':'string'}",
		"{'identifier':true,'max':5,'min':1,'multiline':true,'name':'a','type':'string'}",
		"{'max':5,'min':1,'name':'a','pattern':'(a)','type':'string'}",
		"{'max':1025,'min':1,'name':'a','pattern':'a','type':'string'}",
		"{'default':'toolong','max':5,'min':1,'name':'a','type':'string'}",
		"{'default':null,'max':5,'min':1,'name':'a','type':'string'}",
		"{'default':'a','max':5,'min':1,'name':'a','optional':true,'type':'string'}",
		"{'max':5,'min':1,'name':'a','type':'string','values':['a']}",
		"{'name':'a','type':'enum','values':[]}",
		"{'name':'a','type':'enum','values':['b','a']}",
		"{'name':'a','type':'enum','values':['a','a']}",
		"{'name':'a','type':'enum','values':['']}",
		"{'name':'a','type':'enum','values':[1]}",
		"{'default':'c','name':'a','type':'enum','values':['a','b']}",
		"{'max':5,'min':1,'name':'a','type':'boolean'}",
		"{'multiline':true,'name':'a','type':'boolean'}",
		"{'max':5,'min':1,'name':'a','type':'array'}",
		"{'items':{'name':'x','type':'boolean'},'max':5,'min':1,'name':'a','type':'array'}",
		"{'items':{'optional':true,'type':'boolean'},'max':5,'min':1,'name':'a','type':'"
		"array'}",
		"{'items':{'type':'boolean'},'max':257,'min':1,'name':'a','type':'array'}",
		"{'fields':[],'name':'a','type':'object'}",
		"{'fields':[{'type':'boolean'}],'name':'a','type':'object'}",
		"{'fields':[{'default':true,'name':'b','type':'boolean'}],'name':'a','type':'"
		"object'}",
		"{'name':'b','type':'boolean'},{'name':'a','type':'boolean'}",
		"{'name':'a','type':'boolean'},{'name':'a','type':'boolean'}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		auto_parsed struct parsed p;

		parse_parameters(&p, bad[i]);
		if (p.code != -EINVAL || strstr(p.err.text, "parameter") == NULL)
			fail_msg("row %zu: %d %s", i, p.code, p.err.text);
	}
}

static void
thirty_two_parameters_and_no_more(void **state)
{
	(void)state;
	for (unsigned n = 32; n <= 33; n++) {
		auto_buf struct buf all = {.max = 65536};
		auto_parsed struct parsed p;

		for (unsigned i = 0; i < n; i++)
			buf_addf(&all, "%s{'name':'p%02u','type':'boolean'}", i == 0 ? "" : ",", i);
		buf_add_byte(&all, 0);
		parse_parameters(&p, (const char *)all.p);
		assert_int_equal(p.code, n == 32 ? 0 : -EINVAL);
	}
}

static void
arguments_have_a_ceiling(void **state)
{
	auto_buf struct buf big = {.max = 1 << 20}, out = {.max = 1 << 20}, d = {.max = 4096};
	auto_parsed struct parsed p;
	struct err err;

	(void)state;
	refund(&p);
	for (size_t i = 0; i <= ARGUMENTS_BYTES_MAX; i++)
		buf_add_byte(&big, ' ');
	assert_int_equal(schema_apply(&p.op, buf_view(&big), &out, &d, &err), -EINVAL);
	assert_non_null(strstr(err.text, "more than 32768"));
	struct buf none = {.max = 4};

	assert_int_equal(
		schema_apply(&p.op, view_str("{\"cents\":1,\"order_id\":\"2\"}"), &none, &d, &err),
		-ENOBUFS);
	buf_done(&none);
}

static void
the_amount_is_the_argument(void **state)
{
	auto_parsed struct parsed p, q;

	(void)state;
	refund(&p);
	assert_int_equal(
		schema_amount(&p.op, view_str("{\"cents\":4200,\"order_id\":\"1\"}")), 4200);
	assert_true(schema_amount(&p.op, view_str("{}")) == INT64_MAX);
	assert_true(schema_amount(&p.op, view_str("{\"cents\":\"1\"}")) == INT64_MAX);
	assert_true(schema_amount(&p.op, view_str("{\"cents\":1")) == INT64_MAX);
	assert_true(schema_amount(&p.op, view_str("")) == INT64_MAX);
	parse(&q, "reply", NULL, NULL);
	assert_int_equal(schema_amount(&q.op, view_str("{}")), 0);
}

/* What was accepted is accepted again, with the same bytes; no change of a byte crashes. */
static void
every_change_of_a_byte_is_another_value_or_none(void **state)
{
	auto_buf struct buf in = {.max = 4096};
	auto_parsed struct parsed p;

	(void)state;
	refund(&p);
	quoted("{'cents':4200,'memo':'a\\nb','order_id':'48221','reason':'late'}", &in);
	for (size_t at = 0; at < in.n; at++) {
		uint8_t kept = in.p[at];

		for (unsigned c = 0; c < 256; c++) {
			auto_buf struct buf out = {.max = 4096}, d = {.max = 256};
			auto_buf struct buf again = {.max = 4096};
			struct err err;

			in.p[at] = (uint8_t)c;
			if (schema_apply(&p.op, buf_view(&in), &out, &d, &err) < 0)
				continue;
			assert_true(view_eq(buf_view(&in), buf_view(&out)));
			assert_int_equal(schema_apply(&p.op, buf_view(&out), &again, &d, &err), 0);
			assert_true(view_eq(buf_view(&again), buf_view(&out)));
		}
		in.p[at] = kept;
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(A2_an_unknown_argument_is_refused),
		cmocka_unit_test(A2_at_any_depth),
		cmocka_unit_test(A3_money_is_an_integer),
		cmocka_unit_test(A4_no_number_is_rounded),
		cmocka_unit_test(A6_there_is_no_minus_zero),
		cmocka_unit_test(A9_an_identifier_is_in_NFC_already),
		cmocka_unit_test(A11_depth_is_bounded),
		cmocka_unit_test(A12_absent_null_and_empty_are_three_things),
		cmocka_unit_test(A13_defaults_are_in_the_bytes_and_named),
		cmocka_unit_test(A14_nothing_stands_behind_the_value),
		cmocka_unit_test(B4_letters_that_look_alike_are_refused),
		cmocka_unit_test(B6_an_address_is_an_address_alone),
		cmocka_unit_test(B7_no_control_character_in_one_line),
		cmocka_unit_test(B9_a_script_is_its_bytes_and_never_a_path),
		cmocka_unit_test(E1_invisible_characters_are_no_identifier),
		cmocka_unit_test(each_type_is_itself),
		cmocka_unit_test(parameters_that_make_no_sense),
		cmocka_unit_test(thirty_two_parameters_and_no_more),
		cmocka_unit_test(arguments_have_a_ceiling),
		cmocka_unit_test(the_amount_is_the_argument),
		cmocka_unit_test(every_change_of_a_byte_is_another_value_or_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
