/* SPDX-License-Identifier: Apache-2.0 */
/* The table of all checks (check.def) by denial: what a room establishes, when, from what, and what a refusal says. */
#pragma once

#include "proto_gen.h"

enum check_room { CHECK_ENGINE = 1, CHECK_BROKER = 2 };
enum check_stage { CHECK_PROPOSE = 1, CHECK_DECIDE = 2, CHECK_DISPATCH = 4 };

struct check {
	enum denial denial;
	unsigned rooms;  /* of enum check_room */
	unsigned stages; /* of enum check_stage */
	const char *evidence, *sentence;
};

/* In the order of check.def; NULL behind the last. */
const struct check *check_at(size_t i);

/* NULL: this denial is no check (NONE, PROVIDER_ANSWER). */
const struct check *check_of(enum denial denial);

/* What to say of it; never NULL. */
const char *denial_sentence(enum denial denial);
