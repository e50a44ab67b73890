/* SPDX-License-Identifier: Apache-2.0 */
/* What an answer means: the table classify.def over status and capability record. Pure. */
#pragma once

#include "lib/action/operation.h"

enum answer_class {
	CLASS_SUCCEEDED,
	CLASS_FAILED,
	CLASS_UNKNOWN,
	CLASS_NOT_PROCESSED, /* nothing was done: the same key may be sent again */
};

struct answer_means {
	enum answer_class class;
	bool incident;
	const char *sentence; /* literal */
};

/* `whole`: the answer came completely. */
struct answer_means classify(const struct operation *op, unsigned status, bool whole);
