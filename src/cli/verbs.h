/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of verbs.def. */
#pragma once

#include "cli/args.h"
#include "cli/client.h"

struct doctor;

struct cli {
	struct args args;
	struct client client;
	struct doctor *doctor; /* borrowed from verb_doctor; else NULL */
};

#define VERB(verb, sub, arguments, run, least, most, command, broken, options, what) verb_fn run;
#include "cli/verbs.def"
#undef VERB
