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

/* A finding: one sentence that ends in the command that mends it. And how many there are since `before` bytes of them. */
void probe_finding(struct cli *cli, const char *fmt, ...) PRINTF(2, 3);
unsigned probe_findings_since(const struct cli *cli, size_t before);

/* Who can change the files alone; the probes of operations and policies look there first. */
probe_fn probe_operation_files, probe_policy_files;

#define PROBE(name, function, needed, what, todo) probe_fn function;
#include "cli/probes.def"
#undef PROBE
