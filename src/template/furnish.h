/* SPDX-License-Identifier: Apache-2.0 */
/* What every image has, whatever it was made from: places, mount points, users, names. */
#pragma once

#include "template/manifest.h"
#include "template/tree.h"

/*
 * Makes the tree what the supervisor expects: empty places and mount points, the agent's
 * user, fixed /etc files that name nothing of the host, everything owned by root, nothing
 * setuid. `json` is the manifest's text for the image, `propose` the program with which programs ask for actions.
 */
int furnish(int root, const struct manifest *m, struct view json, struct view propose,
	struct tree_count *count, struct err *err) MUST_CHECK;
