/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the stand-in that plays actions; see fake.h. What an operation does is in its name. */
#pragma once

#include "fake.h"

/* fake_engine.c */
bool fake_known(struct ipc_peer *peer, uint64_t tag, const struct caller *c);
bool fake_other_tenant(
	struct ipc_peer *peer, const struct caller *c); /* a token with the label "other" */
void fake_refused(struct ipc_peer *peer, uint64_t tag, enum error error, const char *text);

/* fake_actions.c */
extern const struct ipc_row fake_action_rows[];
extern const size_t fake_action_rows_n;

/* fake_egress.c */
extern const struct ipc_row fake_egress_rows[];
extern const size_t fake_egress_rows_n;
