/* SPDX-License-Identifier: Apache-2.0 */
/* Document and options together; see compile.h. */
#include "config/compile.h"

#include "config/option.h"

#include <stdio.h>

enum { PATH_BYTES = 160, SECTIONS_DEEP = 3 };

struct compiler {
	struct settings *settings;
	const struct document_sink *sink;
	unsigned faults;
};

static void
fault(struct compiler *c, struct place at, const char *text)
{
	c->faults++;
	c->sink->on_fault(c->sink->ctx, at, text);
}

static void
on_scalar(struct compiler *c, const char *path, const struct node *n)
{
	struct err err = {0};

	/* A section with nothing below it is an empty scalar. */
	if (n->text.n == 0 && option_is_section(path))
		return;
	if (option_set(c->settings, path, n->text, &err) < 0)
		fault(c, n->at, err.text);
}

static void
on_section(struct compiler *c, const char *above, const struct node *section, unsigned depth)
{
	node_each(n, section)
	{
		char path[PATH_BYTES];
		struct err err = {0};
		int used = snprintf(path, sizeof(path), "%s%s%.*s", above,
			above[0] == '\0' ? "" : ".", VIEW_ARGS(n->key));

		if (view_has(n->key, '.') || used < 0 || (size_t)used >= sizeof(path)) {
			fault(c, n->key_at, "this is not the name of an option");
		} else if (n->kind == NODE_SCALAR) {
			on_scalar(c, path, n);
		} else if (n->kind == NODE_SEQUENCE) {
			fault(c, n->at, "no option is a list");
		} else if (option_is_section(path) && depth < SECTIONS_DEEP) {
			on_section(c, path, n, depth + 1);
		} else {
			(void)err_set(&err, -1,
				"there is no section %s; demilune.yaml(5) lists the options", path);
			fault(c, n->at, err.text);
		}
	}
}

unsigned
compile(struct view text, struct settings *ret, const struct document_sink *sink)
{
	struct compiler c = {.settings = ret, .sink = sink};
	struct document document auto_document;
	struct err err = {0};

	options_default(ret);
	c.faults = document_read(text, &document, sink);
	if (document.root != NULL && document.root->kind == NODE_MAPPING)
		on_section(&c, "", document.root, 1);
	else if (document.root != NULL)
		fault(&c, document.root->at, "the file must be a list of `option: value` lines");
	if (c.faults > 0)
		return c.faults;
	for (unsigned n = 0; options_check(ret, n, &err) < 0; n++)
		fault(&c, (struct place){1, 1}, err.text);
	return c.faults;
}
