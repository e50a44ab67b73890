/* SPDX-License-Identifier: Apache-2.0 */
/* The probes of probes.def. Each leaves the host as it found it. */
#pragma once

#include "cli/verbs.h"
#include "lib/base/buf.h"
#include "proto_gen.h"

enum probe_state {
	PROBE_OK,
	PROBE_MISSING,
	PROBE_WRONG,   /* each thing that is wrong stands in doctor.findings */
	PROBE_UNTRIED, /* this user cannot try it */
};

enum { PROBE_TEXT = 200 };

struct doctor {
	struct settings settings; /* of --config, or all defaults */
	char unsettled[120];      /* why they are not known; empty: they are */
	struct buf
		findings; /* owned: sentences that end in the command that mends it, each with a NUL behind */
};

/* `detail` is one phrase for a person: what is there, or what is missing. */
typedef enum probe_state probe_fn(struct cli *cli, char detail[static PROBE_TEXT]);

#define PROBE(name, function, needed, what, todo) probe_fn function;
#include "cli/probes.def"
#undef PROBE
