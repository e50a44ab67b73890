/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all parts of the compilers of operations and policies use: faults with their file and place, mappings against the tables of keys
 * (keys.def, policy_keys.def), and values of scalars. A reader that refuses has told why and where, in the words of who writes the file.
 */
#pragma once

#include "config/document.h"
#include "config/operations.h"
#include "lib/canon/write.h"

enum section_id {
#define SECTION(id, what, where) SECTION_##id,
#define KEY(section, id, name, kind, need, prose)
#include "config/keys.def"
#include "config/policy_keys.def"
#undef SECTION
#undef KEY
	SECTIONS,
};

enum key_id {
#define SECTION(id, what, where)
#define KEY(section, id, name, kind, need, prose) KEY_##section##_##id,
#include "config/keys.def"
#include "config/policy_keys.def"
#undef SECTION
#undef KEY
	KEYS,
};

struct section {
	enum section_id id;
	const struct node *node;     /* the mapping */
	const struct node *at[KEYS]; /* values; NULL = not there */
};

struct provider_source;

/* The compiler. */
struct builder {
	const struct operations_sink *sink;
	const char *file; /* of what is read now */
	unsigned faults;
	struct provider_source *provider; /* owned */
	size_t providers;
	const struct section *operation; /* being compiled; NULL: none */
	bool incomplete; /* its document lacks a provider that was refused: there is nothing to judge */
};

void fault(struct builder *b, struct place at, const char *fmt, ...) PRINTF(3, 4);

/* 1 to 63 of a-z, 0-9, '.', '_' and '-', a letter or digit first; n may be NULL. */
void value_name(struct builder *b, const struct node *n, const char *key);

/* Bytes with a unit; from min to max. */
bool value_bytes(struct builder *b, const struct node *n, const char *key, uint64_t min,
	uint64_t max, uint64_t *ret);

/* What a section is called in a sentence. */
const char *section_what(enum section_id id);

/* false: it was refused as a whole. Unknown keys, missing keys and wrong kinds are told; at[] has the rest. */
bool section_read(struct builder *b, enum section_id id, const struct node *n, struct section *ret);

/* The name that was meant by a word that is none; NULL: no idea. name() may say NULL for an entry. */
const char *nearest(struct view word, const char *(*name)(const void *ctx, size_t i),
	const void *ctx, size_t n);

/* A whole number; a refusal tells the range. `key` is its name in the sentence. */
bool value_int(struct builder *b, const struct node *n, const char *key, int64_t min, int64_t max,
	int64_t *ret);

/* In milliseconds. */
bool value_duration(struct builder *b, const struct node *n, const char *key, uint64_t min_ms,
	uint64_t max_ms, uint64_t *ret);

/* One of the words, NULL-terminated; *ret_i is its index. */
bool value_word(struct builder *b, const struct node *n, const char *key, const char *const *words,
	unsigned *ret_i);

/* true or false, without quotes. */
bool value_bool(struct builder *b, const struct node *n, const char *key, bool *ret);

/* One line of 1 to max bytes of UTF-8 without control characters. */
bool value_text(struct builder *b, const struct node *n, const char *key, size_t max);

/* What a scalar without quotes is when no schema says it. NULL text in *ret_why: it is fine. */
enum literal {
	LITERAL_TEXT,
	LITERAL_INTEGER,
	LITERAL_TRUE,
	LITERAL_FALSE,
	LITERAL_EMPTY,
	LITERAL_FLOAT,
	LITERAL_DOUBTFUL, /* YAML readers differ: 010, 0x1f, yes, ~ */
};
enum literal literal_of(const struct node *n, int64_t *ret);

/* Statuses: ascending in the document whatever their order in the file; told and left out what is none. */
enum { STATUSES_MAX = 16 };
struct statuses {
	const struct node *node[STATUSES_MAX];
	uint16_t code[STATUSES_MAX];
	size_t n;
};
void statuses_read(struct builder *b, const struct node *list, const char *key, unsigned min,
	unsigned max, struct statuses *ret);
/* A status that both have is told at the place of ours. */
void statuses_apart(struct builder *b, const struct statuses *ours, const char *our_name,
	const struct statuses *theirs, const char *their_name);
void statuses_write(struct canon_writer *w, const char *key, const struct statuses *s);

/* The name of a provider, operation, parameter, ... as its table has it. */
bool name_is(struct view v, bool dash);

/* "name", for objects whose key is a literal. */
static inline void
put_key(struct canon_writer *w, const char *key)
{
	canon_key(w, view_str(key));
}
