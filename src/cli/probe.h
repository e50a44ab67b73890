/* SPDX-License-Identifier: Apache-2.0 */
/* The probes of probes.def. Each leaves the host as it found it. */
#pragma once

#include "cli/verbs.h"

enum probe_state {
	PROBE_OK,
	PROBE_MISSING,
	PROBE_UNTRIED, /* this user cannot try it */
};

enum { PROBE_TEXT = 200 };

/* `detail` is one phrase for a person: what is there, or what is missing. */
typedef enum probe_state probe_fn(struct cli *cli, char detail[static PROBE_TEXT]);

#define PROBE(name, function, needed, what, todo) probe_fn function;
#include "cli/probes.def"
#undef PROBE
