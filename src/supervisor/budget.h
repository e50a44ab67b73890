/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel can give out once for the whole machine, and what of it all sandboxes together may take: numbers of
 * processes, terminals. Looked up once at start by start.c; a configuration that does not fit is refused with a sentence.
 */
#pragma once

#include "lib/base/err.h"
#include "proto_gen.h"

struct budget {
	uint32_t ptys; /* terminals of one sandbox */
};

/* Fills *ret, and settings->max_pids where the configuration leaves it to us. */
int budget_find(struct settings *settings, struct budget *ret, struct err *err) MUST_CHECK;

/* The parts that only count. Pure. `wanted` 0: derive it. */
int budget_pids(uint32_t wanted, uint64_t pid_max, uint64_t threads_max, uint32_t *ret,
	struct err *err) MUST_CHECK;
int budget_ptys(uint64_t max, uint64_t reserve, uint32_t sandboxes, uint32_t *ret,
	struct err *err) MUST_CHECK;
