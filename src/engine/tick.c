/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of the living; see life.h. Runs only while something lives. */
#include "engine/gate.h"
#include "engine/gone.h"
#include "engine/input.h"
#include "engine/job.h"
#include "engine/life.h"
#include "engine/limits.h"
#include "engine/said.h"
#include "lib/base/clock.h"

static bool
is_idle(const struct sandbox *s, uint64_t now)
{
	return s->state == SANDBOX_STATE_RUNNING && !s->persistent && s->jobs_n == 0 &&
	       now >= s->touched_ms + s->idle_ms;
}

/* Records that failed are tried again; jobs that no relay names after a restart are lost. */
static void
tick_jobs(struct sandbox *s, uint64_t now)
{
	bool settle = s->resync_ms != 0 && now >= s->resync_ms;

	list_each (j, &s->jobs, struct job, link) {
		if (j->uncommitted) {
			j->uncommitted = false;
			job_finish(j, j->ended ? job_reason_of(&j->end, &s->usage, &s->usage)
					       : JOB_REASON_AGENT_LOST);
		} else if (settle && !j->told && !j->ended) {
			job_finish(j, JOB_REASON_AGENT_LOST);
		}
	}
	if (settle)
		s->resync_ms = 0;
}

static void
tick_sandbox(struct sandbox *s, uint64_t now)
{
	if (s->uncommitted) {
		sandbox_ended(s, &s->gone, s->proof_known);
		return;
	}
	if (s->frozen_due && s->state != SANDBOX_STATE_STOPPING)
		frozen_again(s);
	wait_expire(s, now);
	if (s->state == SANDBOX_STATE_CREATING && s->deadline_ms != 0 && now >= s->deadline_ms) {
		(void)snprintf(s->refusal, sizeof(s->refusal),
			"the sandbox was not ready in time and was ended");
		sandbox_kill(s, SANDBOX_REASON_SPAWN_FAILED, &principal_engine, view_of(NULL, 0));
		return;
	}
	if (is_idle(s, now)) {
		sandbox_kill(s, SANDBOX_REASON_IDLE, &principal_engine, view_of(NULL, 0));
		return;
	}
	if (s->gate != NULL)
		gate_tick(s->gate, now);
	tick_jobs(s, now);
}

void
life_tick(struct engine *e)
{
	uint64_t now = clock_mono_ms();

	list_each (s, &e->sandboxes, struct sandbox, link)
		tick_sandbox(s, now);
	said_flush(e); /* flows that could not be written before */
	uploads_tick(e, now);
	if (list_empty(&e->sandboxes) && list_empty(&e->uploads))
		ev_timer_stop(e->loop, &e->tick);
}
