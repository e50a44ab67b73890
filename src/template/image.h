/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a finished tree to an image file: erofs, lz4hc, one time stamp, one UUID, no extended
 * attributes, so that the same tree is the same bytes.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/sha256.h"

/* The time stamp of every file in every image: 2023-01-01 00:00:00 UTC. */
#define IMAGE_EPOCH "1672531200"

/* Writes `image` (a path; must not exist) from the directory `tree`. */
int image_make(const char *tree, const char *image, struct err *err) MUST_CHECK;

/* Digest as text and size of a file. */
int image_digest(int dir, const char *name, char ret_digest[SHA256_TEXT], uint64_t *ret_bytes,
	struct err *err) MUST_CHECK;
