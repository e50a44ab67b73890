/* SPDX-License-Identifier: Apache-2.0 */
/* Document and options together; see compile.h. */
#include "config/compile.h"

#include "config/option.h"

struct compiler {
	struct settings *settings;
	const struct compile_sink *sink;
	unsigned faults;
};

static void
on_fault(void *ctx, struct place at, const char *text)
{
	struct compiler *c = ctx;

	c->faults++;
	c->sink->on_fault(c->sink->ctx, at, text);
}

static void
on_value(void *ctx, const char *path, struct view value, struct place at)
{
	struct compiler *c = ctx;
	struct err err = {0};

	/* A section with nothing below it is an empty scalar. */
	if (value.n == 0 && option_is_section(path))
		return;
	if (option_set(c->settings, path, value, &err) < 0)
		on_fault(c, at, err.text);
}

static void
on_mapping(void *ctx, const char *path, struct place at)
{
	struct compiler *c = ctx;
	struct err err = {0};

	if (option_is_section(path))
		return;
	(void)err_set(&err, -1, "there is no section %s; demilune.yaml(5) lists the options", path);
	on_fault(c, at, err.text);
}

unsigned
compile(struct view text, struct settings *ret, const struct compile_sink *sink)
{
	struct compiler c = {.settings = ret, .sink = sink};
	const struct document_sink document = {
		.ctx = &c, .on_value = on_value, .on_mapping = on_mapping, .on_fault = on_fault};
	struct err err = {0};

	options_default(ret);
	document_read(text, &document);
	if (c.faults > 0)
		return c.faults;
	for (unsigned n = 0; options_check(ret, n, &err) < 0; n++)
		on_fault(&c, (struct place){1, 1}, err.text);
	return c.faults;
}
