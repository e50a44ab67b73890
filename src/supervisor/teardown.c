/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a sandbox ends: SIGKILL to PID 1 of its pid namespace (the kernel ends all the others), wait for it, relay and gateway, read
 * the counters a last time, remove, count what is left, and try again until that is nothing. Part of sandbox.h; called by
 * sandbox.c and by the watchers of its processes.
 */
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/ipc/teardown.h"
#include "lib/loop/loop.h"
#include "supervisor/limits.h"
#include "supervisor/proof.h"
#include "supervisor/spare.h"
#include "supervisor/usage.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void
free_gone(struct sandbox *sb)
{
	struct sandboxes *all = sb->all;

	list_remove(&sb->link);
	all->n--;
	if (sb->ordered) {
		all->live--;
		all->memory_bytes -= sb->limits.memory_bytes;
		all->pids -= sb->limits.pids;
	}
	revision_unref(&sb->policy);
	loop_free_later(all->loop, sb);
}

void
sandbox_forget(struct sandbox *sb)
{
	struct ev_loop *loop = sb->all->loop;

	ev_io_stop(loop, &sb->reports);
	ev_io_stop(loop, &sb->died);
	ev_io_stop(loop, &sb->relay_died);
	ev_io_stop(loop, &sb->gateway_died);
	ev_timer_stop(loop, &sb->timer);
	free_gone(sb);
}

/* To the engine, if it ever heard of this one. */
static void
tell(struct sandbox *sb)
{
	struct sandboxes *all = sb->all;

	if (!sb->ordered)
		return;
	if (!sb->told && sb->reason == SANDBOX_REASON_SPAWN_FAILED && !sb->proved_once)
		all->tells->failed(all->owner, sb);
	else
		all->tells->gone(all->owner, sb);
	sb->proved_once = true;
}

/* One look: removes what can be removed. True when the proof is all zero. */
static bool
sweep_once(struct sandbox *sb)
{
	struct sandboxes *all = sb->all;
	struct err err = {0};
	unsigned left;

	fd_close_kept(&sb->volume);
	fd_close_kept(&sb->userns);
	fd_close_kept(&sb->sock);
	fd_close_kept(&sb->pidfd);
	relay_end(&sb->relay);
	gateway_end(&sb->gateway);
	left = cgroup_remove(all->cgroups, sb->name);
	if (left != 0)
		cgroup_kill(all->cgroups, sb->name);
	proof_take(sb, left, &sb->proof);
	if (proof_is_zero(&sb->proof) && journal_drop(all->journal, sb->name, &err) < 0) {
		log_line("%s: %s", sb->name, err.text);
		sb->proof.journal = 1;
	}
	sb->proof.teardown_us = (uint32_t)(clock_mono_us() - sb->kill_us);
	return proof_is_zero(&sb->proof);
}

static void
on_sweep(struct ev_loop *loop, ev_timer *w, int events)
{
	struct sandbox *sb = container_of(w, struct sandbox, timer);
	struct sandboxes *all = sb->all;
	uint64_t pause_ms = LIMIT_SWEEP_MS;

	(void)events;
	if (sweep_once(sb)) {
		ev_timer_stop(loop, w);
		sandbox_step(sb, PHASE_EVENT_SWEPT);
		slot_give(all->slots, sb->slot);
		tell(sb);
		free_gone(sb);
		return;
	}
	if (sb->proof.teardown_us > LIMIT_SWEEP_QUIET_MS * 1000) {
		if (!sb->proved_once) {
			log_line("%s: left after %u us: %u processes, %u control groups, %u "
				 "mounts, %u namespaces, %u in the journal; retried",
				sb->name, sb->proof.teardown_us, sb->proof.processes,
				sb->proof.cgroups, sb->proof.mounts, sb->proof.namespaces,
				sb->proof.journal);
			tell(sb);
		}
		pause_ms = LIMIT_SWEEP_SLOW_MS;
	}
	ev_timer_stop(loop, w);
	ev_timer_init(w, on_sweep, (double)pause_ms / 1000, 0.0);
	ev_timer_start(loop, w);
}

/* Relay and gateway are waited for: the gateway's sockets hold the namespace, and its uid is the next one's of this slot. */
static void
companions_end(struct sandbox *sb)
{
	ev_io_stop(sb->all->loop, &sb->relay_died);
	ev_io_stop(sb->all->loop, &sb->gateway_died);
	relay_end(&sb->relay);
	gateway_end(&sb->gateway);
}

/* They had their time to flush. */
static void
on_grace_over(struct ev_loop *loop, ev_timer *w, int events)
{
	struct sandbox *sb = container_of(w, struct sandbox, timer);

	(void)loop, (void)events;
	companions_end(sb);
	teardown_check(sb);
}

void
teardown_check(struct sandbox *sb)
{
	struct sandboxes *all = sb->all;

	if (sb->pidfd >= 0)
		return;
	if (sb->told && (sb->relay.pidfd >= 0 || sb->gateway.pidfd >= 0)) {
		if (!ev_is_active(&sb->timer)) {
			ev_timer_init(&sb->timer, on_grace_over,
				(double)LIMIT_RELAY_GRACE_MS / 1000, 0.0);
			ev_timer_start(all->loop, &sb->timer);
		}
		return;
	}
	/* Those that nobody ever used have nothing to flush. */
	companions_end(sb);
	ev_timer_stop(all->loop, &sb->timer);
	sandbox_step(sb, PHASE_EVENT_DIED);
	usage_read(all->cgroups, sb->name, sb->volume, &sb->usage);
	if (sb->reason == SANDBOX_REASON_AGENT_LOST && sb->usage.oom_kills > 0)
		sb->reason = SANDBOX_REASON_OOM;
	on_sweep(all->loop, &sb->timer, 0);
}

/* The exit status, or -1 for a signal. */
static int
reap(int *pidfd)
{
	siginfo_t info = {0};

	while (waitid(P_PIDFD, (id_t)*pidfd, &info, WEXITED) < 0 && errno == EINTR)
		;
	fd_close_kept(pidfd);
	return info.si_code == CLD_EXITED ? info.si_status : -1;
}

/* What the exit of a relay says about its sandbox; the numbers stand in its README. */
static enum sandbox_reason
relay_verdict(int status)
{
	enum { BROKEN = 2, GUEST_GONE = 3 };

	if (status == BROKEN)
		return SANDBOX_REASON_PROTOCOL;
	return status == GUEST_GONE ? SANDBOX_REASON_AGENT_LOST : SANDBOX_REASON_RELAY_LOST;
}

void
on_sandbox_died(struct ev_loop *loop, ev_io *w, int events)
{
	struct sandbox *sb = container_of(w, struct sandbox, died);

	(void)events;
	ev_io_stop(loop, w);
	ev_io_stop(loop, &sb->reports);
	if (sb->phase < PHASE_KILLING) {
		struct spawn_report report;
		struct err err = {0};

		/* What it said last may lie behind its death in the queue. */
		while (spawn_report_read(sb->sock, &report, &err) == 0) {
			if (report.step == SPAWN_FAILED && sb->fault.code == 0)
				sb->fault = report.err;
			spawn_report_done(&report);
		}
		if (sb->fault.code == 0)
			(void)err_set(
				&sb->fault, -ECHILD, "its first process died while it was built");
		sandbox_kill(
			sb, sb->told ? SANDBOX_REASON_AGENT_LOST : SANDBOX_REASON_SPAWN_FAILED);
	}
	(void)reap(&sb->pidfd);
	teardown_check(sb);
}

void
on_relay_died(struct ev_loop *loop, ev_io *w, int events)
{
	struct sandbox *sb = container_of(w, struct sandbox, relay_died);
	int status;

	(void)events;
	ev_io_stop(loop, w);
	status = reap(&sb->relay.pidfd);
	if (sb->phase < PHASE_KILLING) {
		if (sb->fault.code == 0)
			(void)err_set(&sb->fault, -ECHILD, "its relay died while it was built");
		sandbox_kill(sb, sb->told ? relay_verdict(status) : SANDBOX_REASON_SPAWN_FAILED);
	} else {
		teardown_check(sb);
	}
}

void
on_gateway_died(struct ev_loop *loop, ev_io *w, int events)
{
	struct sandbox *sb = container_of(w, struct sandbox, gateway_died);

	(void)events;
	ev_io_stop(loop, w);
	(void)reap(&sb->gateway.pidfd);
	gateway_leave(&sb->gateway);
	if (sb->phase >= PHASE_KILLING) {
		teardown_check(sb);
	} else if (sb->policy != NULL) {
		if (sb->fault.code == 0)
			(void)err_set(&sb->fault, -ECHILD, "its gateway died while it was built");
		sandbox_kill(
			sb, sb->told ? SANDBOX_REASON_GATEWAY_LOST : SANDBOX_REASON_SPAWN_FAILED);
	} else if (!sb->ordered) {
		log_line("spare %s: its gateway died; a sandbox with a policy gets another",
			sb->name);
	}
}

void
teardown_begin(struct sandbox *sb)
{
	ev_init(&sb->reports, NULL);
	ev_init(&sb->died, on_sandbox_died);
	ev_init(&sb->relay_died, on_relay_died);
	ev_init(&sb->gateway_died, on_gateway_died);
	ev_init(&sb->timer, on_sweep);
}

void
sandbox_kill(struct sandbox *sb, enum sandbox_reason reason)
{
	struct sandboxes *all = sb->all;
	struct err err = {0};

	if (sb->phase >= PHASE_KILLING)
		return;
	/* A spare that is lost is replaced, not at once: the next may fail like this one. */
	if (!sb->ordered && !all->stopping)
		spares_refill(all, LIMIT_SPARE_RETRY_MS);
	sb->reason = reason;
	sb->kill_us = clock_mono_us();
	ev_timer_stop(all->loop, &sb->timer);
	/* A version 1 freezer holds even SIGKILL back. */
	if ((sb->phase == PHASE_FROZEN || sb->freezing) &&
		cgroup_freeze(all->cgroups, sb->name, false, &err) < 0)
		log_line("%s: %s", sb->name, err.text); /* the sweep tries again, by group */
	if (sb->freezing) {
		sb->freezing = false;
		(void)err_set(&err, -ECANCELED, "the sandbox ends");
		all->tells->frozen(all->owner, sb, sb->freeze_tag, false, &err);
	}
	sandbox_step(sb, PHASE_EVENT_KILL);
	if (sb->told)
		gateway_leave(&sb->gateway); /* it tells what it counted, and ends */
	else
		gateway_kill(&sb->gateway);
	if (sb->pidfd >= 0)
		(void)syscall(
			SYS_pidfd_send_signal, sb->pidfd, SIGKILL, NULL, 0); /* it may have ended */
	teardown_check(sb);
}
