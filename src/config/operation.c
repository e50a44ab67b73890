/* SPDX-License-Identifier: Apache-2.0 */
/* An operation; see operation.h. First all but its conditions is written and read; then each condition can be asked about, at its place. */
#include "config/operation.h"

#include "config/operation_parts.h"
#include "config/parameter.h"
#include "config/template.h"
#include "lib/action/condition.h"
#include "proto_gen.h"

enum { DESCRIBE_MAX = 512 };

static void
head_check(
	struct builder *b, const struct section *s, int64_t *ret_version, enum effect *ret_effect)
{
	static const char *const effects[] = {"read", "draft", "external", "irreversible", NULL};
	const struct node *version = s->at[KEY_OPERATION_VERSION],
			  *effect = s->at[KEY_OPERATION_EFFECT],
			  *describe = s->at[KEY_OPERATION_DESCRIBE];
	unsigned e = EFFECT_IRREVERSIBLE;

	if (!name_is(s->node->key, false))
		fault(b, s->node->key_at,
			"the name of an operation is 1 to 63 of a-z, 0-9 and _, a letter first");
	if (version != NULL)
		(void)value_int(b, version, "version", 1, INT32_MAX, ret_version);
	if (effect != NULL)
		(void)value_word(b, effect, "effect", effects, &e);
	if (describe != NULL && value_text(b, describe, "describe", DESCRIBE_MAX) &&
		(view_has(describe->text, '"') || view_has(describe->text, '\\')))
		fault(b, describe->at, "describe has no \" and \\ in it");
	*ret_effect = (enum effect)e;
	if (s->at[KEY_OPERATION_VERIFY] == NULL && effect != NULL && e == EFFECT_IRREVERSIBLE)
		fault(b, effect->at,
			"what is irreversible needs verify: what must the system of record say "
			"before anybody is asked?");
}

static void
document_write(
	struct builder *b, const struct section *s, enum conditions which, struct canon_writer *w)
{
	enum effect effect = EFFECT_IRREVERSIBLE;
	int64_t version = 1;

	head_check(b, s, &version, &effect);
	canon_object_begin(w);
	amount_write(b, s, w);
	approval_write(b, s, effect, w);
	budgets_write(b, s, w);
	if (s->at[KEY_OPERATION_DESCRIBE] != NULL) {
		put_key(w, "describe");
		canon_str(w, s->at[KEY_OPERATION_DESCRIBE]->text);
	}
	put_key(w, "effect");
	canon_str(w, view_str(effect_text(effect)));
	put_key(w, "name");
	canon_str(w, s->node->key);
	put_key(w, "parameters");
	parameters_write(b, s->at[KEY_OPERATION_PARAMETERS], 0, w);
	request_write(b, s, effect, w);
	verify_write(b, s, which, w);
	put_key(w, "version");
	canon_int(w, version);
	canon_object_end(w);
}

/* false: it was refused, and told. */
static bool
document_read_back(struct builder *b, const struct section *s, enum conditions which,
	struct buf *out, struct operation *ret)
{
	unsigned before = b->faults;
	struct canon_writer w;
	struct err err = {0};
	int r;

	canon_begin(&w, out);
	document_write(b, s, which, &w);
	r = canon_end(&w, &err);
	if (r == 0 && b->faults == before && !b->incomplete)
		r = operation_read(buf_view(out), ret, &err);
	/* A value that is no text is refused only when nothing better was said about it. */
	if (r < 0 && b->faults == before)
		fault(b, s->node->key_at, "%s", err.text);
	return b->faults == before && !b->incomplete;
}

static void
conditions_check(struct builder *b, const struct section *s, const struct operation *op)
{
	const struct node *verify = s->at[KEY_OPERATION_VERIFY];
	const struct node *all = verify == NULL ? NULL : node_child(verify, "require");
	size_t conditions = 0;

	if (all == NULL)
		return;
	if (all->first == NULL)
		fault(b, all->at, "require is empty; what must hold?");
	node_each(n, all)
	{
		struct err err = {0};

		if (n->kind != NODE_SCALAR)
			fault(b, n->at,
				"a condition is text in quotes, such as \"order.tenant == "
				"@tenant\"");
		else if (condition_check(op, n->text, &err) < 0)
			fault(b, n->at, "%s", err.text);
		if (conditions++ == CONDITIONS_MAX)
			fault(b, n->at, "require has more than %d conditions", CONDITIONS_MAX);
	}
}

void
operation_compile(struct builder *b, const struct node *n, struct buf *out)
{
	auto_buf struct buf first, last;
	struct operation op = {0};
	unsigned before = b->faults;
	struct section s;

	buf_init(&first, CANON_BYTES_MAX);
	buf_init(&last, CANON_BYTES_MAX);
	if (!section_read(b, SECTION_OPERATION, n, &s))
		return;
	b->operation = &s;
	b->incomplete = false;
	if (document_read_back(b, &s, CONDITIONS_LATER, &first, &op)) {
		conditions_check(b, &s, &op);
		if (b->faults == before && document_read_back(b, &s, CONDITIONS_NOW, &last, &op))
			catalogue_put(out, buf_view(&last));
	}
	b->operation = NULL;
}
