/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs of the sandbox trust in TLS: files of /run/demilune/trust, to which the image's own places lead (src/template/furnish.c).
 * Until a TRUST frame came they are the image's own roots. Nothing of the host depends on any of it: a job may change it for itself.
 */
#pragma once

#include "proto_gen.h"

struct agent;

/* At the start, behind propose_open(): the image's own. Without the directory there is nothing, and programs find no roots. */
void trust_open(void);

/* Before the first job. Does not return when the files cannot be made: nothing would work that the sandbox is for. */
void trust_take(struct agent *a, const struct frame_trust *m);

enum {
#define TRUST(variable, file) TRUST_##variable,
#include "trust.def"
#undef TRUST
	TRUST_VARIABLES
};

/* "NAME=value" of trust.def, NULL behind the last. */
extern const char *const trust_environment[TRUST_VARIABLES + 1];
