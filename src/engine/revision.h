/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies and their revisions. A task has a name; a sandbox has the revision of its creation, for its life, whatever the files of the host say later.
 * So the store keeps the document of every revision that was ever used.
 */
#pragma once

#include "engine/engine.h"

/* The policies of the host, once, at start; takes fd. */
int revisions_open(struct engine *e, int fd, struct err *err) MUST_CHECK;
void revisions_done(struct engine *e);

bool policy_is_for(const struct policy *p, const char *tenant);

/*
 * The name of a policy that a request asks for, into ret[64]: "" = the default of the host, "none" = none (""). Refused as not found when there is none
 * of this name for this tenant.
 */
int policy_choose(struct engine *e, const char *tenant, struct view asked, char ret[static 64],
	struct err *err) MUST_CHECK;

/* What a new sandbox of this tenant gets; refused as above. Borrowed for ever. */
int revision_now(struct engine *e, const char *tenant, const char *name, const struct policy **ret,
	struct err *err) MUST_CHECK;

/* One by its digest: of the host, or from the store. Borrowed for ever. */
int revision_find(struct engine *e, const uint8_t digest[static 32], const struct policy **ret,
	struct err *err) MUST_CHECK;

/* Into the store, inside the open transaction. */
int revision_keep(struct engine *e, const struct policy *p, struct err *err) MUST_CHECK;
