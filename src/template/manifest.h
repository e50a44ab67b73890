/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a template is made of, as its author wrote it (template.yaml, see manifest.def) or
 * as an import without a manifest gets it. The reader refuses everything that it does not
 * know and tells all problems at once, each as "file:line:column: sentence".
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/canon/write.h"

struct strings {
	char **v; /* owned, and each string too; NULL behind the last, if any was added */
	size_t n;
	bool failed; /* an addition did not fit: look once, after the last */
};

struct manifest {
	char *name; /* owned, like all strings here */
	char *description;
	char *suite; /* NULL: imported */
	char *hostname;
	char *user_name;
	char *home;
	uint32_t uid, gid;
	struct strings aliases;  /* sorted */
	struct strings packages; /* sorted */
	struct strings exclude;  /* in the order of the file */
	struct strings places;   /* sorted; none inside another */
	struct strings env;      /* "NAME=value", in the order of the names */
	struct strings *finish;  /* owned; argument vectors, in order */
	size_t n_finish;
};

void manifest_init(struct manifest *m);
void manifest_done(struct manifest *m);

static inline void
manifest_cleanup(struct manifest *m)
{
	manifest_done(m);
}
#define auto_manifest __attribute__((cleanup(manifest_cleanup)))

/*
 * Reads the text of `file` (a name for the messages). On refusal *problems holds one line
 * per problem and *err the first; *ret (initialised before) may hold what was read so far.
 */
int manifest_parse(struct view text, const char *file, struct manifest *ret, struct buf *problems,
	struct err *err) MUST_CHECK;

/* The manifest of an imported tree: `places` may be empty, then the usual ones are taken. */
int manifest_imported(const char *name, const char *const *places, size_t n_places,
	struct manifest *ret, struct err *err) MUST_CHECK;

/*
 * The manifest as canonical JSON (lib/canon): what its digest is made of and what stands in
 * the image at MANIFEST_IN_IMAGE.
 */
int manifest_json(const struct manifest *m, struct buf *ret, struct err *err) MUST_CHECK;

#define MANIFEST_IN_IMAGE "/etc/demilune/template.json"

/* Brings env into the order that manifest_write needs. */
void manifest_sort_env(struct manifest *m);

/* The same as a value inside a larger document. */
void manifest_write(const struct manifest *m, struct canon_writer *w);

/* Appends a copy; -ENOMEM or -E2BIG, and `failed` stays set. */
int strings_add(struct strings *s, struct view v);
void strings_addf(struct strings *s, const char *fmt, ...) PRINTF(2, 3);
void strings_sort(struct strings *s);
void strings_done(struct strings *s);

/* An array of strings as a value of a document. */
void strings_write(struct canon_writer *w, const struct strings *s);
#define auto_strings __attribute__((cleanup(strings_done)))
