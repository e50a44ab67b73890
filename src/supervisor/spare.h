/* SPDX-License-Identifier: Apache-2.0 */
/* Spares: made ahead, used once, replaced when nothing else is asked. */
#pragma once

#include "supervisor/sandbox.h"

/* A new one in phase CLONING; NULL with the reason. Whatever it had acquired is taken down as for any sandbox. */
struct sandbox *spare_new(struct sandboxes *all, struct err *err) MUST_CHECK;

/* The best that is there and not ordered yet, or a new one; NULL with the reason. */
struct sandbox *spare_take(struct sandboxes *all, struct err *err) MUST_CHECK;

/* From then on there will be LIMIT_SPARES again. */
void spares_refill(struct sandboxes *all, uint64_t in_ms);
