/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containment: nothing new for a scope (the host, a tenant, a task) until a person with the role `release` signs. The row comes first
 * and is on disk before anything else is done; then the broker is told, grants and open proposals are taken back, sandboxes ended.
 * Budgets are frozen by the same check as everything else. What was sent already is listed, for a person to reconcile.
 *
 * A release gives the scope back, but no grant and no proposal; while an execution of it is dispatching or unknown there is none.
 */
#pragma once

#include "engine/audit.h"

enum { SCOPE_TEXT = 96 };

struct scope {
	char text[SCOPE_TEXT];     /* host, tenant:NAME or task:tk_... */
	char tenant[TENANT_BYTES]; /* "" = of all */
	struct id task;            /* zero = of all */
};

/*
 * May nothing new begin for this task of this tenant (task NULL: for no task yet)? 0 with NONE, CONTAINED or RESTORED in *ret and the
 * scope's text, or a fault: then nothing may begin either.
 */
int contained(struct engine *e, const char *tenant, const struct id *task, enum denial *ret,
	char ret_scope[SCOPE_TEXT], struct err *err) MUST_CHECK;
/* The same as a refusal. */
int contain_refuse(
	struct engine *e, const char *tenant, const struct id *task, struct err *err) MUST_CHECK;

struct containment {
	uint64_t seq, since_ms, released_ms;
	struct scope scope;
	char reason[257], by[97];
	bool restored;
	uint32_t sandboxes_ended, grants_revoked, proposals_stopped;
};

/*
 * Contains it, or does again what is not done yet of a containment that holds. restored: by the engine itself, see quarantine.h.
 */
int contain(struct engine *e, const struct scope *s, const char *reason,
	const struct principal *who, struct view request_id, bool restored, struct containment *ret,
	struct err *err) MUST_CHECK;

/* ---- for release.c ---- */

/* Refused when the caller may not touch such a scope. */
int scope_read(struct engine *e, const struct principal *p, struct view text, struct scope *ret,
	struct err *err) MUST_CHECK;
bool scope_has(const struct scope *s, const char *tenant, const struct id *task);
/* How many executions of it are dispatching or unknown. */
int scope_open(struct engine *e, const struct scope *s, uint32_t *ret, struct err *err) MUST_CHECK;
/* 1 with the one that holds for exactly this scope, else 0. */
int containment_load(struct engine *e, const struct scope *s, struct containment *ret,
	struct err *err) MUST_CHECK;
/* Grants and proposals of it that are still there, inside the open transaction. */
int containment_take(struct engine *e, struct containment *c, const struct principal *who,
	struct view request_id, struct err *err) MUST_CHECK;
int containment_audit(struct engine *e, const struct containment *c, const char *event,
	const struct principal *who, struct view request_id, struct err *err) MUST_CHECK;
void containment_row(const struct containment *c, uint32_t open, struct msg_containment_row *ret);

/* After a restart: sandboxes of a contained scope that still live are ended. */
void contain_resume(struct engine *e);

int on_contain(
	struct engine *e, struct reply to, const struct msg_contain *m, struct err *err) MUST_CHECK;
int on_release(
	struct engine *e, struct reply to, const struct msg_release *m, struct err *err) MUST_CHECK;
int on_containment_list(struct engine *e, struct reply to, const struct msg_containment_list *m,
	struct err *err) MUST_CHECK;
