/* SPDX-License-Identifier: Apache-2.0 */
/* Spares; see spare.h. Called by sandbox.c. */
#include "supervisor/spare.h"

#include "lib/base/log.h"
#include "supervisor/dev.h"
#include "supervisor/limits.h"
#include "supervisor/ns.h"

#include <errno.h>
#include <stdio.h>

static int
group_begin(struct sandbox *sb, struct spawn_kit *kit, struct err *err)
{
	const struct cgroups *c = sb->all->cgroups;
	int r = cgroup_make(c, sb->name, err);

	if (r < 0)
		return r;
	kit->cgroup = cgroup_open_v2(c, sb->name);
	return cgroup_open_entries(c, sb->name, kit->entries, &kit->nentries, err);
}

/* Closes what only the clone needed. */
static void
kit_done(struct spawn_kit *kit)
{
	if (kit->dev >= 0)
		(void)close(take_fd(&kit->dev)); /* the clone has its own */
	if (kit->cgroup >= 0)
		(void)close(take_fd(&kit->cgroup)); /* only a directory */
	while (kit->nentries > 0)
		(void)close(kit->entries[--kit->nentries]); /* the clone has its own */
}

static int
process_begin(struct sandbox *sb, struct spawn_kit *kit, struct err *err)
{
	struct sandboxes *all = sb->all;
	int r = group_begin(sb, kit, err);

	if (r < 0)
		return r;
	sb->userns = ns_user_make(
		slot_uid(all->slots, sb->slot), (uint32_t)LIMIT_UIDS_PER_SANDBOX, err);
	if (sb->userns < 0)
		return sb->userns;
	kit->userns = sb->userns;
	kit->dev = dev_copy(all->stage, "tree", sb->userns, err);
	if (kit->dev < 0)
		return kit->dev;
	sb->pid = spawn_clone(kit, &sb->sock, &sb->pidfd, err);
	return sb->pid < 0 ? (int)sb->pid : 0;
}

/* Journal first, then everything else. */
static struct sandbox *
spare_alloc(struct sandboxes *all, struct err *err)
{
	auto_free struct sandbox *sb = calloc(1, sizeof(*sb));
	uint32_t slot;

	if (sb == NULL) {
		(void)err_set(err, -ENOMEM, "no memory for a sandbox");
		return NULL;
	}
	if (slot_take(all->slots, &slot, err) < 0)
		return NULL;
	sb->all = all;
	sb->slot = slot;
	sb->pid = -1;
	sb->pidfd = sb->sock = sb->userns = sb->volume = -1;
	sb->relay = RELAY_NONE;
	sb->gateway = GATEWAY_NONE;
	(void)snprintf(
		sb->name, sizeof(sb->name), "s%llu-%u", (unsigned long long)++all->serial, slot);
	if (journal_add(all->journal, sb->name, slot, err) < 0) {
		slot_give(all->slots, slot);
		return NULL;
	}
	list_append(&all->list, &sb->link);
	all->n++;
	return take_ptr(sb);
}

struct sandbox *
spare_new(struct sandboxes *all, struct err *err)
{
	struct spawn_kit kit = {.dev = -1,
		.agent = all->agent,
		.stage = all->stage_path,
		.cgroup = -1,
		.masks = all->masks,
		.nmasks = all->nmasks,
		.ptys = all->budget.ptys};
	struct sandbox *sb = spare_alloc(all, err);
	int r;

	if (sb == NULL)
		return NULL;
	teardown_begin(sb);
	r = process_begin(sb, &kit, err);
	kit_done(&kit);
	if (r == 0) {
		sandbox_watch(sb);
		sandbox_step(sb, PHASE_EVENT_CLONED);
		r = relay_start(&sb->relay, all->programs->path[PROGRAM_RELAY],
			all->settings->relay_uid, err);
	}
	if (r == 0 && all->policies->n > 0)
		r = bind_start(sb, err);
	if (r == 0) {
		ev_io_set(&sb->relay_died, sb->relay.pidfd, EV_READ);
		ev_io_start(all->loop, &sb->relay_died);
		return sb;
	}
	sandbox_kill(sb, SANDBOX_REASON_SPAWN_FAILED);
	return NULL;
}

struct sandbox *
spare_take(struct sandboxes *all, struct err *err)
{
	struct sandbox *best = NULL;

	list_each (sb, &all->list, struct sandbox, link)
		if (!sb->ordered && (sb->phase == PHASE_SPARE ||
					    (sb->phase == PHASE_CLONING && best == NULL))) {
			best = sb;
			if (sb->phase == PHASE_SPARE)
				return best;
		}
	return best != NULL ? best : spare_new(all, err);
}

static size_t
spares_count(const struct sandboxes *all, bool *ret_busy)
{
	size_t n = 0;

	*ret_busy = false;
	list_each (sb, &all->list, struct sandbox, link) {
		n += !sb->ordered && (sb->phase == PHASE_SPARE || sb->phase == PHASE_CLONING);
		*ret_busy |= sb->ordered && sb->phase < PHASE_RUNNING;
	}
	return n;
}

static void
on_refill(struct ev_loop *loop, ev_timer *w, int events)
{
	struct sandboxes *all = container_of(w, struct sandboxes, refill);
	struct err err = {0};
	bool busy;
	size_t n = spares_count(all, &busy);

	(void)loop, (void)events;
	if (all->stopping || n >= LIMIT_SPARES)
		return;
	if (!busy && spare_new(all, &err) == NULL) {
		log_line("no spare sandbox: %s", err.text);
		spares_refill(all, LIMIT_SPARE_RETRY_MS);
		return;
	}
	spares_refill(all, LIMIT_SPARE_DELAY_MS);
}

void
spares_refill(struct sandboxes *all, uint64_t in_ms)
{
	ev_timer_stop(all->loop, &all->refill);
	ev_timer_init(&all->refill, on_refill, (double)in_ms / 1000, 0.0);
	ev_timer_start(all->loop, &all->refill);
}
