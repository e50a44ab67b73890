/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a sandbox up to the moment it must end; see sandbox.h. Called by serve.c. Reads from its own clone
 * only, over a socket that closes when the first byte of a guest could be executed.
 */
#include "supervisor/sandbox.h"

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/loop/loop.h"
#include "supervisor/limits.h"
#include "supervisor/measure.h"
#include "supervisor/mount.h"
#include "supervisor/spare.h"

#include <errno.h>
#include <stdio.h>

void
sandbox_step(struct sandbox *sb, enum phase_event event)
{
	struct err err = {0};

	must(phase_next(sb->phase, event, &sb->phase, &err) == 0);
}

/* The sandbox cannot be built: the first sentence stays. */
static void
give_up(struct sandbox *sb, const struct err *why)
{
	if (sb->fault.code == 0)
		sb->fault = *why;
	if (!sb->ordered)
		log_line("spare %s: %s", sb->name, why->text);
	sandbox_kill(sb, SANDBOX_REASON_SPAWN_FAILED);
}

/* ---- ceilings ---- */

static int
limits_check(const struct limits *l, const struct limits *max, struct err *err)
{
	const struct {
		const char *what;
		uint64_t value, ceiling;
	} rows[] = {
		{"memory", l->memory_bytes, max->memory_bytes},
		{"disk", l->disk_bytes, max->disk_bytes},
		{"inodes", l->disk_inodes, max->disk_inodes},
		{"processes", l->pids, max->pids},
		{"processor share", l->cpu_milli, max->cpu_milli},
		{"open files", l->open_files, max->open_files},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].value == 0 || rows[i].value > rows[i].ceiling)
			return err_set(err, -ERANGE,
				"%s: %llu is not between 1 and this host's ceiling %llu",
				rows[i].what, (unsigned long long)rows[i].value,
				(unsigned long long)rows[i].ceiling);
	return 0;
}

static int
ceilings_check(const struct sandboxes *all, const struct msg_spawn *m, struct err *err)
{
	const struct settings *s = all->settings;
	int r = limits_check(&m->limits, &s->max_limits, err);

	if (r < 0)
		return r;
	if (m->ttl_ms == 0 || m->ttl_ms > s->max_ttl_ms)
		return err_set(err, -ERANGE,
			"a life of %llu ms is not between 1 and this host's ceiling %llu",
			(unsigned long long)m->ttl_ms, (unsigned long long)s->max_ttl_ms);
	if (all->live >= s->max_sandboxes)
		return err_set(
			err, -EAGAIN, "this host runs its %u sandboxes already", s->max_sandboxes);
	if (m->limits.memory_bytes > s->max_memory_bytes - all->memory_bytes)
		return err_set(err, -EAGAIN,
			"the memory limits of all sandboxes would pass this host's %llu bytes",
			(unsigned long long)s->max_memory_bytes);
	if (m->limits.pids > s->max_pids - all->pids)
		return err_set(err, -EAGAIN,
			"the process limits of all sandboxes would pass this host's %u",
			s->max_pids);
	return 0;
}

/* ---- building ---- */

static int
volume_make(struct sandbox *sb, struct err *err)
{
	char size[32], inodes[32];
	const struct mount_option options[] = {
		{"source", sb->name}, {"mode", "0755"}, {"size", size}, {"nr_inodes", inodes}};

	(void)snprintf(size, sizeof(size), "%llu", (unsigned long long)sb->limits.disk_bytes);
	(void)snprintf(inodes, sizeof(inodes), "%u", sb->limits.disk_inodes);
	sb->volume = mount_new(
		"tmpfs", options, ARRAY_LEN(options), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
	return sb->volume < 0 ? sb->volume
			      : marks_volume(&sb->marks, sb->all->watch, sb->volume, err);
}

static int
order_give(struct sandbox *sb, struct err *err)
{
	struct sandboxes *all = sb->all;
	const struct template *t = template_find(all->templates, sb->template);
	static struct spawn_order order;
	struct plumbing plumbing;
	auto_fd int root = -1;
	int r;

	if (t == NULL)
		return err_set(err, -ENOENT, "its template is not mounted");
	r = cgroup_limit(all->cgroups, sb->name, sb->limits.memory_bytes, sb->limits.pids,
		sb->limits.cpu_milli, err);
	if (r == 0)
		r = volume_make(sb, err);
	if (r < 0)
		return r;
	root = template_copy(t, sb->userns, err);
	if (root < 0)
		return root;
	r = bind_order(sb, &plumbing, err);
	if (r < 0)
		return r;
	order = (struct spawn_order){.uid_base = slot_uid(all->slots, sb->slot),
		.open_files = sb->limits.open_files,
		.pids = sb->limits.pids,
		.places = sb->places,
		.plumbing = plumbing};
	id_text(&sb->id, ID_SANDBOX, order.hostname);
	for (char *p = order.hostname; *p != '\0'; p++)
		if (*p == '_')
			*p = '-'; /* no host name has it */
	const int fds[SPAWN_FDS] = {[SPAWN_FD_ROOT] = root,
		[SPAWN_FD_VOLUME] = sb->volume,
		[SPAWN_FD_CHANNEL] = sb->relay.channel};

	r = spawn_order_send(sb->sock, &order, fds, err);
	return r == 0 ? relay_agent_starts(&sb->relay, err) : r;
}

/* A spare that is ordered and ready becomes a sandbox. */
static void
order_try(struct sandbox *sb)
{
	struct err err = {0};

	if (!sb->ordered || sb->phase != PHASE_SPARE)
		return;
	if (order_give(sb, &err) < 0) {
		give_up(sb, &err);
		return;
	}
	sb->timings.cloned_us = (uint32_t)(clock_mono_us() - sb->asked_us);
	sandbox_step(sb, PHASE_EVENT_ORDER);
	/* It works beside the clone. */
	if (sb->policy != NULL && bind_named(sb, &err) < 0)
		give_up(sb, &err);
}

/* Executed: measured, told. */
static void
on_executed(struct sandbox *sb)
{
	struct sandboxes *all = sb->all;
	const struct measure_of of = {.pid = sb->pid,
		.group = sb->name,
		.volume = sb->volume,
		.places = &sb->places,
		.cgroups = all->cgroups};
	struct err err = {0};

	if (sb->policy != NULL && !sb->plumbed) {
		(void)err_set(&err, -EPROTO, "its gateway got no sockets");
		give_up(sb, &err);
		return;
	}
	if (measure(&of, &sb->facts, &err) < 0) {
		give_up(sb, &err);
		return;
	}
	memcpy(sb->facts.template, sb->template, SHA256_BYTES);
	sb->timings.measured_us = (uint32_t)(clock_mono_us() - sb->asked_us);
	ev_timer_stop(all->loop, &sb->timer);
	sandbox_step(sb, PHASE_EVENT_STARTED);
	sb->told = true;
	all->tells->spawned(all->owner, sb);
	(void)close(take_fd(&sb->relay.engine)); /* the engine has its own */
	fd_close_kept(&sb->gateway.engine);      /* the same */
	(void)close(take_fd(&sb->userns));       /* its process keeps it */
	(void)close(take_fd(&sb->sock));         /* the other end closed at exec */
	spares_refill(all, LIMIT_SPARE_DELAY_MS);
}

static void
on_report(struct sandbox *sb, const struct spawn_report *r)
{
	uint32_t us = (uint32_t)(r->mono_us - sb->asked_us);
	struct err err = {0};

	switch (r->step) {
	case SPAWN_READY:
		if (marks_namespaces(&sb->marks, sb->pid, &err) < 0) {
			give_up(sb, &err);
			return;
		}
		sandbox_step(sb, PHASE_EVENT_READY);
		order_try(sb);
		return;
	case SPAWN_MOUNTED:
		sb->timings.mounted_us = us;
		if (sb->policy != NULL && bind_listening(sb, r, &err) < 0)
			give_up(sb, &err);
		return;
	case SPAWN_STARTED:
		sb->timings.started_us = us;
		sb->started = true;
		return;
	case SPAWN_FAILED:
		give_up(sb, &r->err);
		return;
	}
}

static void
on_reports(struct ev_loop *loop, ev_io *w, int events)
{
	struct sandbox *sb = container_of(w, struct sandbox, reports);
	struct err err = {0};

	(void)events;
	while (sb->phase < PHASE_RUNNING) {
		struct spawn_report report;
		int r = spawn_report_read(sb->sock, &report, &err);

		if (r == -EAGAIN)
			return;
		if (r < 0)
			break;
		on_report(sb, &report);
		spawn_report_done(&report);
	}
	/* Closed, or no longer of interest. */
	ev_io_stop(loop, w);
	if (sb->phase == PHASE_BUILDING && sb->started)
		on_executed(sb);
}

static void
on_build_timeout(struct ev_loop *loop, ev_timer *w, int events)
{
	struct sandbox *sb = container_of(w, struct sandbox, timer);
	struct err err = {0};

	(void)loop, (void)events;
	(void)err_set(&err, -ETIMEDOUT, "it was not built within %d ms", (int)LIMIT_SPAWN_MS);
	give_up(sb, &err);
}

void
sandbox_watch(struct sandbox *sb)
{
	struct ev_loop *loop = sb->all->loop;

	ev_io_init(&sb->reports, on_reports, sb->sock, EV_READ);
	ev_io_start(loop, &sb->reports);
	ev_io_set(&sb->died, sb->pidfd, EV_READ);
	ev_io_start(loop, &sb->died);
}

struct sandbox *
sandbox_find(struct sandboxes *all, const struct id *id)
{
	list_each (sb, &all->list, struct sandbox, link)
		if (sb->ordered && id_eq(&sb->id, id))
			return sb;
	return NULL;
}

/* Of the host's table; *ret is borrowed, NULL for none. */
static int
policy_of(const struct sandboxes *all, const uint8_t digest[static 32], struct revision **ret,
	struct err *err)
{
	static const uint8_t none[32];
	struct revision *r;

	*ret = NULL;
	if (memcmp(digest, none, sizeof(none)) == 0)
		return 0;
	r = revisions_find(all->policies, digest);
	if (r == NULL)
		return err_set(err, -ENOENT,
			"this host does not hold that revision of its policy any more: ask again");
	if (r->is.ipv6 && !all->ipv6)
		return err_set(err, -EAFNOSUPPORT,
			"policy %s is for IPv6 (addresses: ipv6), which the kernel of this host "
			"has "
			"not or was told to leave out",
			r->is.name);
	*ret = r;
	return 0;
}

int
sandbox_order(struct sandboxes *all, const struct msg_spawn *m, uint64_t tag, struct err *err)
{
	uint64_t asked_us = clock_mono_us();
	const struct template *t;
	struct revision *policy;
	struct sandbox *sb;
	int r;

	if (sandbox_find(all, &m->sandbox) != NULL)
		return err_set(err, -EEXIST, "the sandbox exists already");
	if (all->stopping)
		return err_set(err, -ESHUTDOWN, "the host is stopping");
	r = ceilings_check(all, m, err);
	if (r < 0)
		return r;
	t = template_find(all->templates, m->template);
	if (t == NULL)
		return err_set(err, -ENOENT, "its template is not mounted");
	r = policy_of(all, m->policy, &policy, err);
	if (r < 0)
		return r;
	sb = spare_take(all, err);
	if (sb == NULL)
		return err->code;
	r = journal_name(all->journal, sb->name, &m->sandbox, &m->task, err);
	if (r < 0)
		return r; /* still a spare */
	sb->ordered = true;
	sb->id = m->sandbox;
	sb->task = m->task;
	sb->limits = m->limits;
	memcpy(sb->template, m->template, SHA256_BYTES);
	sb->places = t->places;
	if (policy != NULL)
		sb->policy = revision_ref(policy);
	sb->tag = tag;
	sb->asked_us = asked_us;
	sb->born_ms = deadline_now_ms();
	all->live++;
	all->memory_bytes += m->limits.memory_bytes;
	all->pids += m->limits.pids;
	(void)sandbox_ttl_set(sb, m->ttl_ms);
	ev_timer_init(&sb->timer, on_build_timeout, (double)LIMIT_SPAWN_MS / 1000, 0.0);
	ev_timer_start(all->loop, &sb->timer);
	order_try(sb);
	return 0;
}

/* ---- time ---- */

static void
deadline_renew(struct sandboxes *all)
{
	uint64_t first = UINT64_MAX;

	list_each (sb, &all->list, struct sandbox, link)
		if (sb->ordered && sb->phase < PHASE_KILLING && sb->ends_ms < first)
			first = sb->ends_ms;
	deadline_set(&all->deadline, first);
}

static void
on_deadline(void *owner)
{
	struct sandboxes *all = owner;
	uint64_t now = deadline_now_ms();

	list_each (sb, &all->list, struct sandbox, link)
		if (sb->ordered && sb->phase < PHASE_KILLING && sb->ends_ms <= now)
			sandbox_kill(sb, SANDBOX_REASON_TTL);
	deadline_renew(all);
}

uint64_t
sandbox_ttl_set(struct sandbox *sb, uint64_t ttl_ms)
{
	uint64_t now = deadline_now_ms(), last = sb->born_ms + sb->all->settings->max_ttl_ms;

	sb->ends_ms = ttl_ms < last - now ? now + ttl_ms : last;
	if (last < now)
		sb->ends_ms = now;
	deadline_renew(sb->all);
	return sandbox_ttl_left_ms(sb);
}

uint64_t
sandbox_ttl_left_ms(const struct sandbox *sb)
{
	uint64_t now = deadline_now_ms();

	return sb->ends_ms > now ? sb->ends_ms - now : 0;
}

/* ---- freezing ---- */

static void
freeze_told(struct sandbox *sb, const struct err *err)
{
	struct sandboxes *all = sb->all;
	bool is = cgroup_is_frozen(all->cgroups, sb->name);

	sb->freezing = false;
	ev_timer_stop(all->loop, &sb->timer);
	if (is != (sb->phase == PHASE_FROZEN))
		sandbox_step(sb, is ? PHASE_EVENT_FREEZE : PHASE_EVENT_THAW);
	all->tells->frozen(all->owner, sb, sb->freeze_tag, is, err);
}

static void
on_freeze_check(struct ev_loop *loop, ev_timer *w, int events)
{
	struct sandbox *sb = container_of(w, struct sandbox, timer);
	struct err err = {0};

	(void)loop, (void)events;
	if (cgroup_is_frozen(sb->all->cgroups, sb->name) == sb->freeze_wanted) {
		freeze_told(sb, NULL);
	} else if (clock_mono_us() - sb->freeze_us > LIMIT_FREEZE_MS * 1000) {
		/* Not half frozen: it goes on. */
		if (cgroup_freeze(sb->all->cgroups, sb->name, false, &err) == 0)
			(void)err_set(&err, -EBUSY,
				"a process of the sandbox cannot be stopped now; it goes on");
		freeze_told(sb, &err);
	}
}

void
sandbox_freeze(struct sandbox *sb, bool frozen, uint64_t tag)
{
	struct sandboxes *all = sb->all;
	struct err err = {0};

	if (sb->freezing || (sb->phase != PHASE_RUNNING && sb->phase != PHASE_FROZEN)) {
		(void)err_set(&err, -EBUSY, "the sandbox is being built, frozen or ended");
		all->tells->frozen(all->owner, sb, tag, sb->phase == PHASE_FROZEN, &err);
		return;
	}
	sb->freeze_tag = tag;
	sb->freeze_wanted = frozen;
	sb->freeze_us = clock_mono_us();
	if (cgroup_freeze(all->cgroups, sb->name, frozen, &err) < 0) {
		freeze_told(sb, &err);
		return;
	}
	if (cgroup_is_frozen(all->cgroups, sb->name) == frozen) {
		freeze_told(sb, NULL);
		return;
	}
	sb->freezing = true;
	ev_timer_init(&sb->timer, on_freeze_check, 0.001, 0.001);
	ev_timer_start(all->loop, &sb->timer);
}

/* ---- all ---- */

int
sandboxes_init(struct sandboxes *all, struct err *err)
{
	list_init(&all->list);
	all->nmasks = spawn_masks(all->masks, ARRAY_LEN(all->masks));
	ev_timer_init(&all->refill, NULL, 0.0, 0.0);
	all->watch = marks_open(err);
	if (all->watch < 0)
		return all->watch;
	return deadline_init(&all->deadline, all->loop, on_deadline, all, err);
}

void
sandboxes_done(struct sandboxes *all)
{
	/* Whatever could not be taken down stays in the journal, for the next start. */
	list_each (sb, &all->list, struct sandbox, link)
		sandbox_forget(sb);
	ev_timer_stop(all->loop, &all->refill);
	deadline_done(&all->deadline, all->loop);
	(void)close(take_fd(&all->watch)); /* only heard */
}

void
sandboxes_stop(struct sandboxes *all)
{
	all->stopping = true;
	ev_timer_stop(all->loop, &all->refill);
	list_each (sb, &all->list, struct sandbox, link)
		sandbox_kill(sb, SANDBOX_REASON_HOST_STOPPED);
}

void
sandboxes_engine_lost(struct sandboxes *all)
{
	list_each (sb, &all->list, struct sandbox, link)
		if (sb->ordered && !sb->told)
			sandbox_kill(sb, SANDBOX_REASON_ENGINE_RESTART);
}
