/* SPDX-License-Identifier: Apache-2.0 */
/* The two ways to a template; both end with one final line on standard output:
 * "built|cached|imported NAME DIGEST BYTES". */
#pragma once

#include "template/manifest.h"

/*
 * Builds the template of manifest_dir/template.yaml into the store below state_dir, or finds
 * it there. Takes a minute. Needs root and, unless cached, the Debian archive.
 * A refused manifest puts its problems, one a line, into *problems and returns -EINVAL.
 */
int template_build(const char *manifest_dir, const char *state_dir, struct buf *problems,
	struct err *err) MUST_CHECK;

/* Makes a template from a directory or a tar that holds a whole root file system. `m` from manifest_imported. */
int template_import(const struct manifest *m, const char *tree, const char *state_dir,
	struct err *err) MUST_CHECK;
