/* SPDX-License-Identifier: Apache-2.0 */
/* Limits; see limit.h. */
#include "engine/limit.h"

#include "engine/limits.h"
#include "engine/sandbox.h"

#include <errno.h>
#include <inttypes.h>

enum { CREATION = 1000, PAGE = 4096, AMOUNT_TEXT = 40 };

/* An amount as people say it: the largest unit that leaves no rest. */
static void
bytes_text(uint64_t v, char ret[static AMOUNT_TEXT])
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
	size_t i = 0;

	for (; v != 0 && v % 1024 == 0 && i + 1 < ARRAY_LEN(units); i++)
		v /= 1024;
	(void)snprintf(ret, AMOUNT_TEXT, "%" PRIu64 " %s", v, units[i]);
}

static void
time_text(uint64_t ms, char ret[static AMOUNT_TEXT])
{
	static const struct {
		uint64_t ms;
		const char *name;
	} units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "min"}, {1000, "s"}, {1, "ms"}};
	size_t i = 0;

	/* A day alone is 24 h: that is how it is configured. */
	while (i + 1 < ARRAY_LEN(units) && (ms % units[i].ms != 0 || ms < units[i].ms + (i == 0)))
		i++;
	(void)snprintf(ret, AMOUNT_TEXT, "%" PRIu64 " %s", ms / units[i].ms, units[i].name);
}

static void
cpu_text(uint64_t milli, char ret[static AMOUNT_TEXT])
{
	(void)snprintf(ret, AMOUNT_TEXT, "%" PRIu64 ".%03" PRIu64 " processors", milli / 1000,
		milli % 1000);
	if (milli % 1000 == 0)
		(void)snprintf(ret, AMOUNT_TEXT, "%" PRIu64 " processors", milli / 1000);
}

static void
count_text(uint64_t v, char ret[static AMOUNT_TEXT])
{
	(void)snprintf(ret, AMOUNT_TEXT, "%" PRIu64, v);
}

/* A limit in sentences: what it is called, its ceiling in the configuration, and its unit. */
struct word {
	const char *what, *option;
	void (*text)(uint64_t v, char ret[static AMOUNT_TEXT]);
};

static const struct word word_memory = {"memory", "limits.sandbox_memory", bytes_text},
			 word_disk = {"disk", "limits.sandbox_disk", bytes_text},
			 word_inodes = {"inodes", "limits.sandbox_inodes", count_text},
			 word_pids = {"pids", "limits.sandbox_pids", count_text},
			 word_cpu = {"cpu", "limits.sandbox_cpu", cpu_text},
			 word_files = {"open files", "limits.sandbox_open_files", count_text};

static int
one(const struct word *w, uint64_t asked, uint64_t fallback, uint64_t max, uint64_t *ret,
	struct err *err)
{
	uint64_t v = asked != 0 ? asked : fallback;
	char much[AMOUNT_TEXT], most[AMOUNT_TEXT];

	if (v > max && asked == 0)
		v = max; /* a default above the ceiling means the ceiling */
	if (v > max) {
		w->text(v, much);
		w->text(max, most);
		return REFUSE(err, BAD_REQUEST,
			"%s: %s is more than this host allows, which is %s (%s in its "
			"configuration)",
			w->what, much, most, w->option);
	}
	*ret = v;
	return 0;
}

static int
one_u32(const struct word *w, uint32_t asked, uint32_t fallback, uint32_t max, uint32_t *ret,
	struct err *err)
{
	uint64_t v = 0;
	int r = one(w, asked, fallback, max, &v, err);

	if (r == 0)
		*ret = (uint32_t)v;
	return r;
}

int
limits_resolve(const struct settings *c, const struct limits *asked, const struct limits *fallback,
	struct limits *ret, struct err *err)
{
	const struct limits *max = &c->max_limits;
	struct limits l = {0};
	int r = one(&word_memory, asked->memory_bytes, fallback->memory_bytes, max->memory_bytes,
		&l.memory_bytes, err);

	if (r == 0)
		r = one(&word_disk, asked->disk_bytes, fallback->disk_bytes, max->disk_bytes,
			&l.disk_bytes, err);
	if (r == 0)
		r = one_u32(&word_inodes, asked->disk_inodes, fallback->disk_inodes,
			max->disk_inodes, &l.disk_inodes, err);
	if (r == 0)
		r = one_u32(&word_pids, asked->pids, fallback->pids, max->pids, &l.pids, err);
	if (r == 0)
		r = one_u32(&word_cpu, asked->cpu_milli, fallback->cpu_milli, max->cpu_milli,
			&l.cpu_milli, err);
	if (r == 0)
		r = one_u32(&word_files, asked->open_files, fallback->open_files, max->open_files,
			&l.open_files, err);
	if (r < 0)
		return r;
	/* The kernel counts pages; what is measured later must be what was asked for. */
	l.memory_bytes &= ~(uint64_t)(PAGE - 1);
	l.disk_bytes &= ~(uint64_t)(PAGE - 1);
	if (l.memory_bytes < (16 << 20) || l.disk_bytes < (1 << 20) || l.disk_inodes < 100 ||
		l.pids < 16 || l.cpu_milli < 50 || l.open_files < 64)
		return REFUSE(err, BAD_REQUEST,
			"too small: a sandbox needs 16 MiB memory, 1 MiB disk, 100 inodes, 16 "
			"pids, 0.05 cpu, 64 files");
	*ret = l;
	return 0;
}

int
ttl_resolve(const struct settings *c, uint64_t asked_ms, uint64_t fallback_ms, uint64_t *ret,
	struct err *err)
{
	uint64_t v = asked_ms != 0 ? asked_ms : fallback_ms;
	char least[AMOUNT_TEXT], most[AMOUNT_TEXT];

	if (asked_ms == 0 && v > c->max_ttl_ms)
		v = c->max_ttl_ms;
	if (v < LIMIT_TTL_MIN_MS || v > c->max_ttl_ms) {
		time_text(LIMIT_TTL_MIN_MS, least);
		time_text(c->max_ttl_ms, most);
		return REFUSE(err, BAD_REQUEST,
			"ttl: this host allows %s to %s (limits.ttl in its configuration)", least,
			most);
	}
	*ret = v;
	return 0;
}

int
idle_resolve(uint64_t asked_ms, uint64_t fallback_ms, uint64_t *ret, struct err *err)
{
	uint64_t v = asked_ms != 0 ? asked_ms : fallback_ms;

	if (v < LIMIT_IDLE_MIN_MS || v > (UINT64_C(1) << 42))
		return REFUSE(err, BAD_REQUEST,
			"idle time: at least %" PRIu64 " seconds, and no ages",
			LIMIT_IDLE_MIN_MS / 1000);
	*ret = v;
	return 0;
}

int
quota_check(struct engine *e, const char *tenant, uint64_t memory_bytes, struct err *err)
{
	const struct settings *c = &e->settings;
	uint64_t memory = memory_bytes;
	char most[AMOUNT_TEXT];
	unsigned n = 1;

	if (e->sandboxes_n + 1 > c->max_sandboxes)
		return REFUSE(err, QUOTA,
			"this host has all its %u sandboxes in use; end one first",
			c->max_sandboxes);
	if (memory_bytes > c->max_memory_bytes ||
		e->memory_bytes > c->max_memory_bytes - memory_bytes) {
		bytes_text(c->max_memory_bytes, most);
		return REFUSE(err, QUOTA,
			"the sandboxes of this host may use %s of memory together; end one first",
			most);
	}
	list_each (s, &e->sandboxes, struct sandbox, link)
		if (strcmp(s->tenant, tenant) == 0) {
			n++;
			memory += s->limits.memory_bytes;
		}
	if (n > c->tenant_max_sandboxes)
		return REFUSE(err, QUOTA,
			"the tenant has all its %u sandboxes in use; end one first",
			c->tenant_max_sandboxes);
	if (memory > c->tenant_max_memory_bytes) {
		bytes_text(c->tenant_max_memory_bytes, most);
		return REFUSE(err, QUOTA,
			"the sandboxes of the tenant may use %s of memory together; end one first",
			most);
	}
	return 0;
}

/* ---- rate ---- */

static void
refill(struct rate *r, uint64_t full, uint64_t now_ms)
{
	uint64_t passed = now_ms > r->at_ms ? now_ms - r->at_ms : 0;

	/* A minute fills it, so longer than that makes no difference (and no overflow). */
	if (passed > 60000)
		passed = 60000;
	r->left += passed * full / 60000;
	if (r->left > full)
		r->left = full;
	r->at_ms = now_ms;
}

static struct rate *
rate_of(struct engine *e, const char *tenant, uint64_t full, uint64_t now_ms, struct err *err)
{
	struct rate *found = NULL;

	list_each (r, &e->rates, struct rate, link) {
		if (strcmp(r->tenant, tenant) == 0) {
			refill(r, full, now_ms);
			found = r;
		} else if (now_ms > r->at_ms + 60000) {
			list_remove(&r->link); /* it is full again: the same as a new one */
			free(r);
		}
	}
	if (found != NULL)
		return found;
	found = calloc(1, sizeof(*found));
	if (found == NULL) {
		(void)err_set(err, -ENOMEM, "no memory");
		return NULL;
	}
	(void)snprintf(found->tenant, sizeof(found->tenant), "%s", tenant);
	found->at_ms = now_ms;
	found->left = full;
	list_append(&e->rates, &found->link);
	return found;
}

int
rate_take(struct engine *e, const char *tenant, uint64_t now_ms, struct err *err)
{
	uint64_t full = (uint64_t)e->settings.tenant_creates_per_minute * CREATION;
	struct rate *r = rate_of(e, tenant, full, now_ms, err);

	if (r == NULL)
		return err->code;
	if (r->left < CREATION)
		return REFUSE(err, RATE,
			"the tenant makes more than %u sandboxes a minute; wait a moment",
			e->settings.tenant_creates_per_minute);
	r->left -= CREATION;
	return 0;
}

void
rate_free_all(struct engine *e)
{
	list_each (r, &e->rates, struct rate, link) {
		list_remove(&r->link);
		free(r);
	}
}
