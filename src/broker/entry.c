/* SPDX-License-Identifier: Apache-2.0 */
/* See entry.h. */
#include "broker/entry.h"

#include "lib/base/hex.h"
#include "lib/canon/read.h"
#include "lib/canon/write.h"

#include <errno.h>

enum field_kind { FIELD_STR, FIELD_U64, FIELD_BOOL, FIELD_HEX, FIELD_OBJECT, FIELD_KIND };

enum { ROWS_MAX = 16 };

struct field {
	enum field_kind type;
	const char *key; /* NULL: the end of a kind */
	size_t at;
};

/* In every entry. */
static const struct field common[] = {{FIELD_KIND, "kind", offsetof(struct entry, kind)},
	{FIELD_U64, "ms", offsetof(struct entry, ms)}};

/* The rows of all kinds behind each other, with an empty row at the end of each. */
static const struct field fields[] = {
#define KIND(name, word)
#define FIELD(type, member) {FIELD_##type, #member, offsetof(struct entry, member)},
#define END                 {FIELD_STR, NULL, 0},
#include "broker/ledger.def"
#undef KIND
#undef FIELD
#undef END
};

static const char *const words[ENTRY_KINDS] = {
#define KIND(name, word) [ENTRY_##name] = word,
#define FIELD(type, member)
#define END
#include "broker/ledger.def"
#undef KIND
#undef FIELD
#undef END
};

static void
row_insert(const struct field *rows[static ROWS_MAX], size_t *n, const struct field *row)
{
	size_t i = *n;

	must(*n < ROWS_MAX);
	for (; i > 0 && strcmp(rows[i - 1]->key, row->key) > 0; i--)
		rows[i] = rows[i - 1];
	rows[i] = row;
	++*n;
}

/* What an entry of this kind has, keys ascending; returns how many. */
static size_t
rows_of(enum entry_kind kind, const struct field *rows[static ROWS_MAX])
{
	const struct field *f = fields;
	size_t n = 0;

	for (unsigned k = 0; k < (unsigned)kind; f++)
		k += f->key == NULL;
	for (; f->key != NULL; f++)
		row_insert(rows, &n, f);
	for (size_t i = 0; i < ARRAY_LEN(common); i++)
		row_insert(rows, &n, &common[i]);
	return n;
}

/* One canonical value, appended. */
static int
value_write(const struct field *f, const void *member, struct buf *out, struct err *err)
{
	struct canon_writer w;

	if (f->type == FIELD_OBJECT) { /* it is canonical already, or entry_write finds out */
		buf_add_view(out, *(const struct view *)member);
		return 0;
	}
	canon_begin(&w, out);
	switch (f->type) {
	case FIELD_STR:
		canon_text(&w, *(const struct view *)member);
		break;
	case FIELD_U64:
		canon_u64(&w, *(const uint64_t *)member);
		break;
	case FIELD_BOOL:
		canon_bool(&w, *(const bool *)member);
		break;
	case FIELD_HEX:
		canon_bytes_hex(&w, view_of(member, SHA256_BYTES));
		break;
	case FIELD_KIND:
		canon_str(&w, view_str(words[*(const enum entry_kind *)member]));
		break;
	case FIELD_OBJECT:
		must(false);
	}
	return canon_end(&w, err) < 0 ? err_context(err, "ledger entry, %s", f->key) : 0;
}

/* What is written is read back before it counts, so that nothing gets into the ledger that the next start would refuse. */
int
entry_write(const struct entry *e, struct buf *out, struct err *err)
{
	auto_buf struct buf whole = {.max = out->max}, room = {.max = out->max};
	const struct field *rows[ROWS_MAX];
	size_t n = rows_of(e->kind, rows);
	struct entry again;

	for (size_t i = 0; i < n; i++) {
		buf_addf(&whole, "%c\"%s\":", i == 0 ? '{' : ',', rows[i]->key);
		if (value_write(rows[i], (const char *)e + rows[i]->at, &whole, err) < 0)
			return err->code;
	}
	buf_add_byte(&whole, '}');
	if (buf_check(&whole) < 0)
		return err_set(err, -ENOBUFS, "the ledger entry is too large");
	if (entry_read(buf_view(&whole), &room, &again, err) < 0)
		return err_context(err, "ledger entry");
	buf_add_view(out, buf_view(&whole));
	return buf_check(out) < 0 ? err_set(err, -ENOBUFS, "the ledger entry is too large") : 0;
}

/* One whole object of canonical bytes, as it stands there; the reader is behind its key. */
static int
object(struct canon_reader *r, struct view *ret, struct err *err)
{
	size_t from = r->at;

	if (from >= r->in.n || r->in.p[from] != '{')
		return err_set(err, -EINVAL, "an object must stand here");
	if (canon_skip(r, err) < 0)
		return err->code;
	*ret = view_of(r->in.p + from, r->at - from);
	return 0;
}

static int
get_str(struct canon_reader *r, struct buf *room, struct view *ret, struct err *err)
{
	struct canon_token t;
	size_t from = room->n;

	if (canon_want(r, CANON_STR, &t, err) < 0)
		return err->code;
	if (!t.escaped) {
		*ret = t.raw;
		return 0;
	}
	canon_token_text(&t, room);
	if (buf_check(room) < 0)
		return err_set(err, -ENOBUFS, "no room for a text");
	*ret = view_of(room->p + from, room->n - from);
	return 0;
}

static int
get(struct canon_reader *r, struct buf *room, const struct field *f, void *member, struct err *err)
{
	struct canon_token t;

	switch (f->type) {
	case FIELD_STR:
		return get_str(r, room, member, err);
	case FIELD_OBJECT:
		return object(r, member, err);
	case FIELD_U64:
		if (canon_want(r, CANON_INT, &t, err) < 0)
			return err->code;
		if (t.i < 0)
			return err_set(err, -ERANGE, "%s is negative", f->key);
		*(uint64_t *)member = (uint64_t)t.i;
		return 0;
	case FIELD_BOOL:
		if (canon_want(r, CANON_BOOL, &t, err) < 0)
			return err->code;
		*(bool *)member = t.b;
		return 0;
	case FIELD_HEX:
		if (canon_want(r, CANON_STR, &t, err) < 0)
			return err->code;
		if (hex_decode(t.raw, member, SHA256_BYTES) < 0)
			return err_set(err, -EINVAL, "%s is no digest", f->key);
		return 0;
	case FIELD_KIND: /* kind_of read it */
		return canon_want(r, CANON_STR, &t, err);
	}
	return err_set(err, -EINVAL, "no such field");
}

static int
kind_of(struct view bytes, enum entry_kind *ret, struct err *err)
{
	struct canon_reader r;
	struct canon_token t;

	canon_reader_init(&r, bytes, true);
	if (canon_want(&r, CANON_OBJECT_BEGIN, &t, err) < 0)
		return err->code;
	for (;;) {
		bool kind;

		if (canon_want(&r, CANON_KEY, &t, err) < 0)
			return err_set(err, -EINVAL, "no kind");
		kind = view_is(t.raw, "kind");
		if (!kind) {
			if (canon_skip(&r, err) < 0)
				return err->code;
			continue;
		}
		if (canon_want(&r, CANON_STR, &t, err) < 0)
			return err->code;
		for (unsigned k = 0; k < ENTRY_KINDS; k++)
			if (view_is(t.raw, words[k])) {
				*ret = (enum entry_kind)k;
				return 0;
			}
		return err_set(err, -EINVAL, "no such kind");
	}
}

int
entry_read(struct view bytes, struct buf *room, struct entry *ret, struct err *err)
{
	const struct field *rows[ROWS_MAX];
	struct canon_reader r;
	struct canon_token t;
	struct entry e = {0};
	size_t n;

	/* Texts are unescaped into one piece of memory that must not move. */
	if (bytes.n == 0 || buf_room(room, bytes.n) == NULL)
		return err_set(err, -ENOBUFS, "no entry, or no room for its texts");
	if (kind_of(bytes, &e.kind, err) < 0)
		return err->code;
	n = rows_of(e.kind, rows);
	canon_reader_init(&r, bytes, true);
	if (canon_want(&r, CANON_OBJECT_BEGIN, &t, err) < 0)
		return err->code;
	for (size_t i = 0; i < n; i++)
		if (canon_want_key(&r, rows[i]->key, err) < 0 ||
			get(&r, room, rows[i], (char *)&e + rows[i]->at, err) < 0)
			return err->code;
	if (canon_want(&r, CANON_OBJECT_END, &t, err) < 0 || canon_want(&r, CANON_END, &t, err) < 0)
		return err->code;
	*ret = e;
	return 0;
}
