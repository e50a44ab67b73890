/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The effective state of a sandbox, read from the kernel after its agent was executed: from /proc of its PID 1, its
 * control groups and its volume. Nothing here is what we asked for; the engine compares.
 */
#pragma once

#include "lib/base/err.h"
#include "proto_gen.h"
#include "supervisor/cgroup.h"
#include "supervisor/place.h"

#include <sys/types.h>

/* Bits of facts.captured, as proto/messages.def says. */
enum {
	CAPTURED_POOL4 = 1,
	CAPTURED_POOL6 = 2,
	CAPTURED_ALL4 = 4,
	CAPTURED_ALL6 = 8,
	CAPTURED_DUMMY4 = 16,
	CAPTURED_DUMMY6 = 32,
};

struct measure_of {
	pid_t pid;
	const char *group;
	int volume; /* descriptor on its tmpfs */
	const struct places *places;
	const struct cgroups *cgroups;
};

/* Fills all but `template`. */
int measure(const struct measure_of *of, struct facts *ret, struct err *err) MUST_CHECK;

/* The parts that read text. Pure. */
int measure_status(struct view status, struct facts *f, struct err *err) MUST_CHECK;
int measure_id_map(
	struct view map, uint32_t *ret_base, uint32_t *ret_count, struct err *err) MUST_CHECK;
int measure_limits(struct view limits, struct facts *f, struct err *err) MUST_CHECK;
void measure_mounts(struct view mountinfo, const struct places *places, struct facts *f);
/* What /proc says of routes: of lo's own nothing, of those of a gateway a bit of `captured`, of each other one more in `routes`. */
void measure_routes4(struct view trie, struct facts *f);
void measure_routes6(struct view table, struct facts *f);
unsigned measure_interfaces(struct view dev);
