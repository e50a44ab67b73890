/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The comparison that every sandbox passes before it is handed out: what the kernel shows against
 * policy.def. Pure; what is not as it must be is a difference, and one difference ends it.
 */
#pragma once

#include "proto_gen.h"

struct wanted {
	struct limits limits; /* asked for */
	uint8_t template[32];
	uint32_t uid_first;  /* of the configured range */
	uint32_t uid_slots;  /* ranges in it */
	bool uid_shared;     /* another living sandbox has uids in common */
	uint16_t places;     /* of the template, an upper bound */
	uint8_t captured;    /* facts.captured with its policy; */
	uint8_t captured_v4; /* or on a host without IPv6 */
};

enum policy_fact {
#define FACT(name, holds, sentence) POLICY_##name,
#include "engine/policy.def"
#undef FACT
	POLICY_MAX
};

struct policy_info {
	const char *name, *sentence;
};
extern const struct policy_info policy_info[POLICY_MAX];

/* Bit i set: fact i does not hold. */
uint64_t policy_differences(const struct facts *f, const struct wanted *w);
