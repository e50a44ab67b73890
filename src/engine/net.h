/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a task reached and tried to, as rows: one for each kind of verdict about a name (net), one for each distinct request (egress). A program of a
 * sandbox chooses names and paths, so a task has only so many of either; what comes after is added to rows that say less.
 */
#pragma once

#include "engine/said.h"

/* Inside the open transaction. */
int net_add(const struct said *d, struct err *err) MUST_CHECK;
int request_add(const struct said *d, struct err *err) MUST_CHECK;

int on_net_get(
	struct engine *e, struct reply to, const struct msg_net_get *m, struct err *err) MUST_CHECK;
int on_egress_list(struct engine *e, struct reply to, const struct msg_egress_list *m,
	struct err *err) MUST_CHECK;
int on_policy_list(struct engine *e, struct reply to, const struct msg_policy_list *m,
	struct err *err) MUST_CHECK;
int on_policy_get(struct engine *e, struct reply to, const struct msg_policy_get *m,
	struct err *err) MUST_CHECK;
