/* SPDX-License-Identifier: Apache-2.0 */
/* A task: a row of the database, read when it is needed. It owns one audit chain. */
#pragma once

#include "engine/audit.h"
#include "engine/step.h"

struct task {
	struct engine *engine; /* borrowed */
	uint64_t seq;
	struct id id;
	char tenant[TENANT_BYTES], template[64];
	char policy[64]; /* that its sandboxes get; "" = none */
	enum task_state state;
	bool implicit;              /* made by a creation of a sandbox that named none */
	char owner[PRINCIPAL_TEXT]; /* who made it; "" = before there were actions */
	uint64_t created_ms, closed_ms;
	struct limits limits; /* of its sandboxes, unless they ask for others */
	uint64_t ttl_ms, idle_ms;
	struct buf labels;
};

void task_init(struct task *t, struct engine *e);
void task_done(struct task *t);
#define auto_task __attribute__((cleanup(task_done)))

/* -ENOENT */
int task_load(struct task *t, const struct id *id, struct err *err) MUST_CHECK;

/* As task_load for a request: refused as not found when the caller may not see it. */
int task_find(
	struct task *t, const struct principal *p, const struct id *id, struct err *err) MUST_CHECK;

/* By id in text, or by the label `ticket`. */
int task_find_name(
	struct task *t, const struct principal *p, struct view name, struct err *err) MUST_CHECK;

/* Chain, row and labels, inside the open transaction; sets id, seq and created_ms. */
int task_insert(struct task *t, struct err *err) MUST_CHECK;

/* The one place where the state changes; writes the row, inside the open transaction. */
int task_step(struct task *t, enum task_event event, struct err *err) MUST_CHECK;

/* Every stored input of it is written into a new sandbox; refused unless the task is open. */
int task_check_open(const struct task *t, struct err *err) MUST_CHECK;

int on_task_create(struct engine *e, struct reply to, const struct msg_task_create *m,
	struct err *err) MUST_CHECK;
int on_task_list(struct engine *e, struct reply to, const struct msg_task_list *m,
	struct err *err) MUST_CHECK;
int on_task_get(struct engine *e, struct reply to, const struct msg_task_get *m,
	struct err *err) MUST_CHECK;
int on_task_close(struct engine *e, struct reply to, const struct msg_task_close *m,
	struct err *err) MUST_CHECK;
int on_audit_read(struct engine *e, struct reply to, const struct msg_audit_read *m,
	struct err *err) MUST_CHECK;
