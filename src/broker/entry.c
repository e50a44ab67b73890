/* SPDX-License-Identifier: Apache-2.0 */
/* See entry.h. */
#include "broker/entry.h"

#include "lib/base/hex.h"
#include "lib/canon/read.h"
#include "lib/canon/write.h"

#include <errno.h>

enum field_kind { FIELD_STR, FIELD_U64, FIELD_BOOL, FIELD_HEX, FIELD_OBJECT };

struct field {
	enum field_kind type;
	const char *key; /* NULL: the end of a kind */
	size_t at;
};

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

static const struct field *
fields_of(enum entry_kind kind)
{
	const struct field *f = fields;

	for (unsigned k = 0; k < (unsigned)kind; k++) {
		while (f->key != NULL)
			f++;
		f++;
	}
	return f;
}

static void
put(struct canon_writer *w, const struct field *f, const void *member)
{
	canon_key(w, view_str(f->key));
	switch (f->type) {
	case FIELD_STR:
		canon_text(w, *(const struct view *)member);
		break;
	case FIELD_U64:
		canon_u64(w, *(const uint64_t *)member);
		break;
	case FIELD_BOOL:
		canon_bool(w, *(const bool *)member);
		break;
	case FIELD_HEX:
		canon_bytes_hex(w, view_of(member, SHA256_BYTES));
		break;
	case FIELD_OBJECT:
		must(false); /* copied by entry_write: it is canonical already */
	}
}

/* Nothing that is written here parses again what the broker made itself: an object is put in as it is, then the whole is read back. */
int
entry_write(const struct entry *e, struct buf *out, struct err *err)
{
	auto_buf struct buf whole = {.max = out->max}, room = {.max = out->max};
	struct entry again;
	bool common_put[2] = {false, false};
	static const char *const common[2] = {"kind", "ms"};
	bool some = false;

	buf_add_byte(&whole, '{');
	for (const struct field *f = fields_of(e->kind);; f++) {
		auto_buf struct buf one = {.max = out->max};
		struct canon_writer w;

		for (size_t i = 0; i < 2; i++) {
			if (common_put[i] || (f->key != NULL && strcmp(f->key, common[i]) < 0))
				continue;
			buf_addf(&whole, "%s\"%s\":", some ? "," : "", common[i]);
			if (i == 0)
				buf_addf(&whole, "\"%s\"", words[e->kind]);
			else
				buf_addf(&whole, "%llu", (unsigned long long)e->ms);
			common_put[i] = some = true;
		}
		if (f->key == NULL)
			break;
		buf_addf(&whole, "%s", some ? "," : "");
		some = true;
		if (f->type == FIELD_OBJECT) {
			buf_addf(&whole, "\"%s\":", f->key);
			buf_add_view(&whole,
				*(const struct view *)(const void *)((const char *)e + f->at));
			continue;
		}
		canon_begin(&w, &one);
		canon_object_begin(&w);
		put(&w, f, (const char *)e + f->at);
		canon_object_end(&w);
		if (canon_end(&w, err) < 0)
			return err_context(err, "ledger entry, %s", f->key);
		buf_add(&whole, one.p + 1, one.n - 2);
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
	static const struct field kind_row = {FIELD_STR, "kind", offsetof(struct entry, text)},
				  ms_row = {FIELD_U64, "ms", offsetof(struct entry, ms)};
	struct entry e = {0}, skip = {0};
	const struct field *f;
	struct canon_reader r;
	struct canon_token t;
	size_t read = 0, due = 2;

	/* Texts are unescaped into one piece of memory that must not move. */
	if (bytes.n == 0 || buf_room(room, bytes.n) == NULL)
		return err_set(err, -ENOBUFS, "no entry, or no room for its texts");
	if (kind_of(bytes, &e.kind, err) < 0)
		return err->code;
	f = fields_of(e.kind);
	for (const struct field *i = f; i->key != NULL; i++)
		due++;
	canon_reader_init(&r, bytes, true);
	if (canon_want(&r, CANON_OBJECT_BEGIN, &t, err) < 0)
		return err->code;
	for (;; read++) {
		const struct field *row = NULL;
		struct entry *to = &e;

		if (canon_next(&r, &t, err) < 0)
			return err->code;
		if (t.type == CANON_OBJECT_END)
			break;
		if (view_is(t.raw, "kind")) {
			row = &kind_row;
			to = &skip;
		} else if (view_is(t.raw, "ms")) {
			row = &ms_row;
		}
		for (const struct field *i = f; i->key != NULL && row == NULL; i++)
			if (view_is(t.raw, i->key))
				row = i;
		if (row == NULL)
			return err_set(err, -EINVAL, "a field that this kind does not have");
		if (get(&r, room, row, (char *)to + row->at, err) < 0)
			return err->code;
	}
	if (read != due)
		return err_set(err, -EINVAL, "a field of this kind is missing");
	if (canon_want(&r, CANON_END, &t, err) < 0)
		return err->code;
	*ret = e;
	return 0;
}
