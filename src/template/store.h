/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where templates live, below the state directory:
 *
 *   templates/<digest>.erofs     0444, the image; <digest> is its SHA-256
 *   templates/<digest>.json      0444, its record (canonical JSON)
 *   templates/index/<name>       file: digest and newline
 *   templates/index/<alias>      symbolic link to <name>
 *   templates/built/<manifest>   file: digest; what a manifest was built to
 *   tmp/template/                half-made things, removed at the next start
 *
 * Everything arrives by rename after fsync: record, image, index last; a reader of the index
 * sees a whole template or the one before. One writer at a time, by a lock on templates/.
 */
#pragma once

#include "template/manifest.h"

#include "lib/base/sha256.h"

struct store {
	int templates, index, built; /* owned */
	int tmp;                     /* owned; -1 when opened for reading */
	int lock;                    /* owned; -1 when opened for reading */
	char *tmp_path;              /* owned; absolute */
};

/* Opens for building: makes what is missing, waits for the lock, removes what was left half-made. */
int store_open(const char *state_dir, struct store *ret, struct err *err) MUST_CHECK;

/* Opens for list and show; needs no privilege. */
int store_open_read(const char *state_dir, struct store *ret, struct err *err) MUST_CHECK;

void store_done(struct store *s);

static inline void
store_cleanup(struct store *s)
{
	store_done(s);
}
#define auto_store __attribute__((cleanup(store_cleanup)))

/* Refuses a name or alias that belongs to another template. */
int store_check_names(const struct store *s, const struct manifest *m, struct err *err) MUST_CHECK;

/* 1 and the digest when `manifest_digest` was built before and is all there, else 0. */
int store_find_built(const struct store *s, const char *manifest_digest,
	char ret_digest[SHA256_TEXT], struct err *err) MUST_CHECK;

/*
 * Moves tmp/image_name in as the image `digest`, with its record. An image that is there
 * already keeps its record.
 */
int store_add(const struct store *s, const char *image_name, const char *digest, struct view record,
	const char *manifest_digest, struct err *err) MUST_CHECK;

/* Lets the name point to the digest, and exactly the aliases of the manifest to the name. */
int store_point(const struct store *s, const struct manifest *m, const char *digest,
	struct err *err) MUST_CHECK;

/* The digest that a name or alias stands for. */
int store_resolve(const struct store *s, const char *name, char ret_digest[SHA256_TEXT],
	struct err *err) MUST_CHECK;

/* The record of a digest. */
int store_record(
	const struct store *s, const char *digest, struct buf *ret, struct err *err) MUST_CHECK;

/* Prints one line per template: name, digest, bytes, aliases; tabs between. */
int store_list(const struct store *s, struct err *err) MUST_CHECK;
