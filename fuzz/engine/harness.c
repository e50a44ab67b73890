/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of what the engine reads that is no message: the record of a template, labels, a command that is
 * made into text, an audit record. The first byte chooses. Text must stay text within its bound; what a
 * reader accepts must keep what the rest of the engine counts on.
 */
#include "engine/labels.h"
#include "engine/redact.h"
#include "engine/template.h"
#include "lib/audit/audit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
try_template(struct view in)
{
	struct template t = {0};
	struct err err;

	buf_init(&t.aliases, 1024);
	buf_init(&t.places, 1024);
	buf_init(&t.env, 8192);
	if (template_parse(in, &t, &err) == 0) {
		must(t.name[0] != '\0');
		must(t.places.n == 0 || t.places.p[t.places.n - 1] == '\0');
		must(t.env.n == 0 || t.env.p[t.env.n - 1] == '\0');
	}
	buf_done(&t.aliases);
	buf_done(&t.places);
	buf_done(&t.env);
}

static void
try_redact(struct view in, bool argv)
{
	struct buf out;

	buf_init(&out, 512);
	if (argv)
		redact_argv(in, 512, &out);
	else
		redact_text(in, 512, &out);
	must(buf_check(&out) == 0 && view_utf8(buf_view(&out)));
	for (size_t i = 0; i < out.n; i++)
		must(out.p[i] >= 0x20 && out.p[i] != 0x7f);
	buf_done(&out);
}

static void
try_labels(struct view in)
{
	struct view key, value;
	struct err err;
	size_t n = 0;

	if (labels_check(in, &err) < 0)
		return;
	for (struct view left = in; labels_next(&left, &key, &value); n += key.n + value.n + 2)
		must(key.n > 0 && !view_has(key, 0) && !view_has(value, 0));
	must(n == in.n);
}

static void
try_audit(struct view in)
{
	struct audit_chain c = {0};
	struct audit_row row = {.number = 1, .record = in};
	struct err err;

	audit_digest(row.previous, in, row.digest);
	if (audit_chain_add(&c, &row, &err) == 0)
		must(c.number == 1 && c.task[0] != '\0');
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct view in = view_of(data, n);

	if (n == 0)
		return 0;
	in = view_skip(in, 1);
	switch (data[0] % 5) {
	case 0:
		try_template(in);
		break;
	case 1:
		try_redact(in, false);
		break;
	case 2:
		try_redact(in, true);
		break;
	case 3:
		try_labels(in);
		break;
	default:
		try_audit(in);
		break;
	}
	return 0;
}
