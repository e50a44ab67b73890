/* SPDX-License-Identifier: Apache-2.0 */
/* The edge to the engine: message table, and what is told on it. */
#pragma once

#include "supervisor/supervisor.h"

enum engine_state { ENGINE_READY, ENGINE_STOPPING };

/* Takes the descriptor; tells SETTINGS, HELD, LEFTOVER, what ended meanwhile, HELD_END. */
int serve_engine(struct supervisor *sv, int fd, struct err *err) MUST_CHECK;
void serve_engine_lost(struct supervisor *sv);
void serve_stopping(struct supervisor *sv);

/* The templates' and sandboxes' callbacks. */
extern const struct sandbox_tells serve_tells;
void serve_template_done(
	void *owner, const struct template *t, uint64_t tag, const struct err *err);

/* Called when a step towards the end of the process was made (stop.c). */
void stop_check(struct supervisor *sv);
