/* SPDX-License-Identifier: Apache-2.0 */
/* The message tables, and the peers that they serve. */
#pragma once

#include "engine/sandbox.h"

/* Each takes fd. */
int serve_supervisor(struct engine *e, int fd, struct err *err) MUST_CHECK;
int serve_broker(struct engine *e, int fd, struct err *err) MUST_CHECK;
int serve_api(struct engine *e, int fd, struct err *err) MUST_CHECK;
struct gate;
int serve_gateway(struct gate *g, int fd, struct err *err) MUST_CHECK;
int serve_relay(struct sandbox *s, int fd, enum relay_state state, struct err *err) MUST_CHECK;
