/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a relay takes of its engine. The engine refuses more with a sentence before it asks; the relay holds
 * it against an engine that asks all the same. One number for both, so it stands with neither.
 */
#pragma once

#include "lib/base/propose_bounds.h"

enum {
	JOB_BOUND_LIVE = 64,                /* jobs that run at the same time in one sandbox */
	JOB_BOUND_KEEP_BYTES = 4 * 1048576, /* kept of each output stream */
};
