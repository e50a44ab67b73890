/* SPDX-License-Identifier: Apache-2.0 */
/* The message tables of the gateway towards supervisor, engine, dialer and broker. */
#pragma once

#include "gateway.h"

/* Of the supervisor's peer: nobody's, after GATEWAY_POLICY, after GATEWAY_BEGIN. */
enum gateway_state { GATEWAY_NEW, GATEWAY_NAMED, GATEWAY_BEGUN };

int serve_supervisor(struct gateway *g, int fd, struct err *err) MUST_CHECK;
