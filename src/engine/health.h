/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the host, in one answer that needs no caller. */
#pragma once

#include "engine/engine.h"

int on_health(
	struct engine *e, struct reply to, const struct msg_health *m, struct err *err) MUST_CHECK;
