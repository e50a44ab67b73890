/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compiled policies, as the supervisor knows them: a sealed document that it never reads, and what it must do for one. New sandboxes get a
 * revision of the host's table; a sandbox keeps its own, whatever the table becomes, by a reference.
 */
#pragma once

#include "lib/base/err.h"
#include "proto_gen.h"

struct revision {
	unsigned refs;
	int document; /* owned: sealed */
	struct msg_config_policy is;
};

/* Checks what was told and takes the descriptor; NULL with the reason. */
struct revision *revision_new(const struct msg_config_policy *m, int document, struct err *err);
struct revision *revision_ref(struct revision *r);
void revision_unref(struct revision **r);

/* The document, opened anew: a position of its own, and no way to write. */
int revision_open(const struct revision *r, struct err *err) MUST_CHECK;

struct revisions {
	struct revision **row; /* owned, and a reference each */
	size_t n;
	int all; /* owned: all of them in one, for the engine; -1 */
};

#define REVISIONS_NONE ((struct revisions){.all = -1})

/* Takes one reference. Refuses a name or digest that is there. */
int revisions_add(struct revisions *p, struct revision *r, struct err *err) MUST_CHECK;
struct revision *revisions_find(const struct revisions *p, const uint8_t digest[static 32]);
void revisions_done(struct revisions *p);
