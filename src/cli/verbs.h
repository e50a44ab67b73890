/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of verbs.def. */
#pragma once

#include "cli/args.h"
#include "cli/client.h"

struct cli {
	struct args args;
	struct client client;
};

#define VERB(verb, sub, arguments, run, least, most, command, broken, options, what) verb_fn run;
#include "cli/verbs.def"
#undef VERB
