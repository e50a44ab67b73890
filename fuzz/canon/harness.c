/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of the canonical reader. The first byte chooses whether control characters are
 * allowed, the rest is the document. What is accepted must be the same bytes when it is
 * written again, and must be JSON for a reader that knows nothing of the profile.
 */
#include "lib/canon/read.h"
#include "lib/canon/write.h"

#include <jansson.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
copy(struct canon_writer *w, const struct canon_token *t, struct buf *text)
{
	switch (t->type) {
	case CANON_OBJECT_BEGIN:
		canon_object_begin(w);
		break;
	case CANON_OBJECT_END:
		canon_object_end(w);
		break;
	case CANON_ARRAY_BEGIN:
		canon_array_begin(w);
		break;
	case CANON_ARRAY_END:
		canon_array_end(w);
		break;
	case CANON_KEY:
		canon_key(w, t->raw);
		break;
	case CANON_STR:
		buf_clear(text);
		canon_token_text(t, text);
		if (t->controls)
			canon_text(w, buf_view(text));
		else
			canon_str(w, buf_view(text));
		break;
	case CANON_INT:
		canon_int(w, t->i);
		break;
	case CANON_BOOL:
		canon_bool(w, t->b);
		break;
	case CANON_NULL:
		canon_null(w);
		break;
	case CANON_END:
		break;
	}
}

static void
check_accepted(struct view doc, bool controls)
{
	auto_buf struct buf out = {.max = CANON_BYTES_MAX}, text = {.max = CANON_BYTES_MAX};
	struct canon_token t = {.type = CANON_NULL};
	struct canon_reader r;
	struct canon_writer w;
	struct err err;
	json_t *seen;

	canon_reader_init(&r, doc, controls);
	canon_begin(&w, &out);
	while (t.type != CANON_END) {
		must(canon_next(&r, &t, &err) == 0);
		copy(&w, &t, &text);
	}
	must(canon_end(&w, &err) == 0);
	must(view_eq(doc, buf_view(&out)));
	seen = json_loadb((const char *)doc.p, doc.n,
		JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	must(seen != NULL);
	json_decref(seen);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct err err;

	if (n == 0)
		return 0;
	bool controls = data[0] % 2 == 1;
	struct view doc = view_of(data + 1, n - 1);

	if (canon_check(doc, controls, &err) == 0)
		check_accepted(doc, controls);
	return 0;
}
