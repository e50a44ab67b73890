/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From SETTINGS to HELD_END, and what the relays tell after it: the database says what should live, the
 * supervisor and the relays say what does. What only the database knows has ended; what only the
 * supervisor knows is killed; jobs that no relay names are lost. Each is recorded.
 */
#pragma once

#include "engine/sandbox.h"

int on_settings(struct engine *e, const struct msg_settings *m, struct err *err) MUST_CHECK;
int on_held(
	struct engine *e, struct ipc_msg *in, const struct msg_held *m, struct err *err) MUST_CHECK;
int on_leftover(struct engine *e, const struct msg_leftover *m, struct err *err) MUST_CHECK;
int on_held_end(struct engine *e, struct err *err) MUST_CHECK;
int on_relay_job(struct sandbox *s, const struct msg_relay_job *m, struct err *err) MUST_CHECK;
int on_relay_jobs_end(struct sandbox *s, struct err *err) MUST_CHECK;
