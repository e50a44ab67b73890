/* SPDX-License-Identifier: Apache-2.0 */
/* Image files of templates: found, checked, mounted. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/sha256.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Opens <digest>.erofs in `templates`. It must be a regular file of root that nobody else may write, so that it stays
 * what was checked.
 */
int image_open(int templates, const uint8_t digest[SHA256_BYTES], uint64_t *ret_bytes,
	struct err *err) MUST_CHECK;

/* The digest of the file is this one; reads it whole. For a process of its own. */
bool image_is(int image, const uint8_t digest[SHA256_BYTES]);

/*
 * A detached read-only erofs mount: from the file itself (Linux 6.12), else through a loop device that goes with the
 * mount. Owned by the caller.
 */
int image_mount(int image, struct err *err) MUST_CHECK;

/* The second way alone. */
int image_mount_loop(int image, struct err *err) MUST_CHECK;
