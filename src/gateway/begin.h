/* SPDX-License-Identifier: Apache-2.0 */
/* From a gateway that waits to that of one sandbox. */
#pragma once

#include "gateway.h"

/* What can be made before it is anybody's. */
int gateway_init(struct gateway *g, struct err *err) MUST_CHECK;
void gateway_done(struct gateway *g);

/* GATEWAY_POLICY came: its names and its authority are made. Takes fd: the policy, which must have this digest. */
int gateway_policy(
	struct gateway *g, int fd, const struct msg_gateway_policy *m, struct err *err) MUST_CHECK;

/* GATEWAY_BEGIN came. */
void gateway_begin(struct gateway *g);

/* An engine is there: what programs must trust, and whoever waits for it. Not before gateway_begin(). */
void gateway_engine_there(struct gateway *g);
