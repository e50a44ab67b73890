/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a request to the first command: authorise, look for the idempotency key, check limits,
 * record, SPAWN; SPAWNED: compare the facts with the policy; RELAY_READY: write the task's inputs,
 * record, answer. Whatever fails on the way ends the sandbox, and the caller hears why.
 */
#pragma once

#include "engine/sandbox.h"
#include "engine/template.h"

int on_sandbox_create(struct engine *e, struct reply to, const struct msg_sandbox_create *m,
	struct err *err) MUST_CHECK;
int on_task_resume(struct engine *e, struct reply to, const struct msg_task_resume *m,
	struct err *err) MUST_CHECK;

int on_spawned(struct engine *e, struct ipc_msg *in, const struct msg_spawned *m,
	struct err *err) MUST_CHECK;
int on_spawn_failed(struct engine *e, const struct msg_spawn_failed *m, struct err *err) MUST_CHECK;
int on_relay_ready(struct sandbox *s, const struct msg_relay_ready *m, struct err *err) MUST_CHECK;

/* Its gateway listens, for a sandbox that has one: the other half of ready. */
void create_gateway_ready(struct sandbox *s);

/* The template of waiting sandboxes was mounted, or cannot be. */
void create_template_done(struct engine *e, const struct template *t);

/* A stored input was written into it (or not): the next one, or ready. */
void create_input_done(struct sandbox *s, bool good);

/* Compares facts with the policy; on a difference it is recorded, told and the sandbox ended. True: as wanted. */
bool create_facts_right(struct sandbox *s);
