/* SPDX-License-Identifier: Apache-2.0 */
/* Operations for the tests of this folder; see parsed.h. */
#include "tests/unit/action/parsed.h"

void
quoted(const char *text, struct buf *out)
{
	for (; *text != 0; text++)
		buf_add_byte(out, (uint8_t)(*text == '\'' ? '"' : *text));
}

static void
replaced(struct view all, const char *from, const char *to, struct buf *out)
{
	auto_buf struct buf a = {.max = 65536}, b = {.max = 65536};
	const uint8_t *at;
	size_t before;

	quoted(from, &a);
	quoted(to, &b);
	at = memmem(all.p, all.n, a.p, a.n);
	must(at != NULL);
	before = (size_t)(at - all.p);
	buf_add(out, all.p, before);
	buf_add_view(out, buf_view(&b));
	buf_add_view(out, view_skip(all, before + a.n));
	must(buf_check(out) == 0);
}

void
parse(struct parsed *ret, const char *name, const char *from, const char *to)
{
	auto_buf struct buf all = {.max = 65536};

	*ret = (struct parsed){.document = {.max = 1 << 20}};
	sample_document(name, 8080, &all);
	if (from == NULL)
		buf_add_view(&ret->document, buf_view(&all));
	else
		replaced(buf_view(&all), from, to, &ret->document);
	ret->code = operation_read(buf_view(&ret->document), &ret->op, &ret->err);
}

void
parse_parameters(struct parsed *ret, const char *parameters)
{
	auto_buf struct buf all = {.max = 65536}, with = {.max = 65536};

	*ret = (struct parsed){.document = {.max = 1 << 20}};
	sample_document("note", 8080, &all);
	replaced(buf_view(&all),
		"{'max':4000,'min':1,'multiline':true,'name':'text','type':'string'}", parameters,
		&with);
	replaced(buf_view(&with), "{'argument':'text'}", "{'literal':'x'}", &ret->document);
	ret->code = operation_read(buf_view(&ret->document), &ret->op, &ret->err);
}

void
parsed_done(struct parsed *p)
{
	buf_done(&p->document);
}
