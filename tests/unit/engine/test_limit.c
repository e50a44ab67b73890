/* SPDX-License-Identifier: Apache-2.0 */
/* Limits, quotas, the token bucket, labels, and the reason of a job: pure decisions at their edges. */
#include "engine/job.h"
#include "engine/labels.h"
#include "engine/limit.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct limits max = {.memory_bytes = UINT64_C(8) << 30,
	.disk_bytes = UINT64_C(8) << 30,
	.disk_inodes = 1000000,
	.pids = 4096,
	.cpu_milli = 8000,
	.open_files = 4096};
static const struct limits normal = {.memory_bytes = 512 << 20,
	.disk_bytes = 256 << 20,
	.disk_inodes = 65536,
	.pids = 256,
	.cpu_milli = 1000,
	.open_files = 1024};

static struct engine engine;

static struct settings *
fresh(void)
{
	engine = (struct engine){.settings = {.max_limits = max,
					 .max_sandboxes = 4,
					 .max_memory_bytes = UINT64_C(4) << 30,
					 .max_ttl_ms = 100000,
					 .tenant_max_sandboxes = 2,
					 .tenant_max_memory_bytes = UINT64_C(2) << 30,
					 .tenant_creates_per_minute = 60}};
	list_init(&engine.sandboxes);
	list_init(&engine.rates);
	return &engine.settings;
}

#define CODE(ERROR) (-(REFUSAL_BASE + (int)ERROR_##ERROR))

/* What the API says is the least is the least: at it accepted, below it refused. */
static void
test_minima(void **state)
{
	static const struct {
		const char *name;
		uint64_t least;
	} rows[] = {
#define BODY(name, prose)
#define STR(name, min, max, prose)
#define NEED(name, min, max, prose)
#define INT(name, min, max, prose) {#name, min},
#define BOOL(name, prose)
#define MAP(name, entries, key, value, prose)
#define LIST(name, entries, item, prose)
#define ANY(name, prose)
#define OBJECT(name, body, prose)
#define SECONDS(name, max, prose)
#define HOST_INT(name, min, max, option, prose) {#name, min},
#define HOST_SECONDS(name, max, option, prose)
#define IGNORED(name, prose)
#define LATER(name, prose)
#define END
#include "api/body.def"
#undef BODY
#undef STR
#undef NEED
#undef INT
#undef BOOL
#undef MAP
#undef LIST
#undef ANY
#undef OBJECT
#undef SECONDS
#undef HOST_INT
#undef HOST_SECONDS
#undef IGNORED
#undef LATER
#undef END
	};
	const struct settings *c = fresh();
	unsigned seen = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct limits least = {0}, below = {0}, got;
		struct err err;

#define ROW(wire, field, unit)                                               \
	if (strcmp(rows[i].name, #wire) == 0) {                              \
		least.field = (typeof(least.field))(rows[i].least * (unit)); \
		below.field = (typeof(least.field))(least.field - 1);        \
	}
		ROW(memory_mb, memory_bytes, 1 << 20)
		ROW(disk_mb, disk_bytes, 1 << 20)
		ROW(disk_inodes, disk_inodes, 1)
		ROW(pids, pids, 1)
		ROW(cpu_milli, cpu_milli, 1)
		ROW(open_files, open_files, 1)
		if (memcmp(&least, &(struct limits){0}, sizeof(least)) == 0)
			continue;
		seen++;
		assert_int_equal(limits_resolve(c, &least, &normal, &got, &err), 0);
		assert_int_equal(limits_resolve(c, &below, &normal, &got, &err), CODE(BAD_REQUEST));
	}
	assert_int_equal(seen, 6);
}

static void
test_limits(void **state)
{
	const struct settings *c = fresh();
	struct limits ask = {0}, got = {0}, before = {.pids = 7};
	struct err err;

	(void)state;
	assert_int_equal(limits_resolve(c, &ask, &normal, &got, &err), 0);
	assert_memory_equal(&got, &normal, sizeof(got));
	assert_int_equal(limits_resolve(c, &max, &normal, &got, &err), 0);
	assert_memory_equal(&got, &max, sizeof(got));
	/* Each field, one above its ceiling; nothing is written then. */
#define ABOVE(field)                                                                       \
	ask = (struct limits){.field = max.field + 1};                                     \
	got = before;                                                                      \
	assert_int_equal(limits_resolve(c, &ask, &normal, &got, &err), CODE(BAD_REQUEST)); \
	assert_memory_equal(&got, &before, sizeof(got))
	ABOVE(memory_bytes);
	ABOVE(disk_bytes);
	ABOVE(disk_inodes);
	ABOVE(pids);
	ABOVE(cpu_milli);
	ABOVE(open_files);
	ask = (struct limits){.memory_bytes = UINT64_MAX};
	assert_int_equal(limits_resolve(c, &ask, &normal, &got, &err), CODE(BAD_REQUEST));
	/* Each field, too small. */
#define BELOW(field, value)                    \
	ask = (struct limits){.field = value}; \
	assert_int_equal(limits_resolve(c, &ask, &normal, &got, &err), CODE(BAD_REQUEST))
	BELOW(memory_bytes, (16 << 20) - 1);
	BELOW(disk_bytes, (1 << 20) - 1);
	BELOW(disk_inodes, 99);
	BELOW(pids, 15);
	BELOW(cpu_milli, 49);
	BELOW(open_files, 63);
	/* Whole pages, as the kernel will report them. */
	ask = (struct limits){.memory_bytes = (64 << 20) + 4095, .disk_bytes = (64 << 20) + 1};
	assert_int_equal(limits_resolve(c, &ask, &normal, &got, &err), 0);
	assert_int_equal(got.memory_bytes, 64 << 20);
	assert_int_equal(got.disk_bytes, 64 << 20);
}

/* What a person reads: units, and where the ceiling comes from. */
static void
test_words(void **state)
{
	struct settings *c = fresh();
	const struct limits ask[] = {
		{.memory_bytes = UINT64_C(100) << 30}, {.cpu_milli = 100500}, {.pids = 5000}};
	static const char *const says[] = {
		"memory: 100 GiB is more than this host allows, which is 8 GiB "
		"(limits.sandbox_memory in its configuration)",
		"cpu: 100.500 processors is more than this host allows, which is 8 processors "
		"(limits.sandbox_cpu in its configuration)",
		"pids: 5000 is more than this host allows, which is 4096 (limits.sandbox_pids in "
		"its configuration)"};
	static const struct {
		uint64_t max_ms;
		const char *most;
	} times[] = {{86400000, "24 h"}, {172800000, "2 d"}, {5400000, "90 min"}, {90000, "90 s"},
		{1500, "1500 ms"}, {3600000, "1 h"}};
	struct limits got;
	struct err err;
	uint64_t ms;
	char text[120];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ask); i++) {
		assert_int_equal(
			limits_resolve(c, &ask[i], &normal, &got, &err), CODE(BAD_REQUEST));
		assert_string_equal(err.text, says[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		c->max_ttl_ms = times[i].max_ms;
		assert_int_equal(ttl_resolve(c, UINT64_MAX, 1, &ms, &err), CODE(BAD_REQUEST));
		(void)snprintf(text, sizeof(text),
			"ttl: this host allows 1 s to %s (limits.ttl in its configuration)",
			times[i].most);
		assert_string_equal(err.text, text);
	}
}

static void
test_times(void **state)
{
	const struct settings *c = fresh();
	uint64_t got = 5;
	struct err err;

	(void)state;
	assert_int_equal(ttl_resolve(c, 0, 50000, &got, &err), 0);
	assert_int_equal(got, 50000);
	assert_int_equal(ttl_resolve(c, 0, 500000, &got, &err), 0);
	assert_int_equal(got, 100000);
	assert_int_equal(ttl_resolve(c, 100000, 1, &got, &err), 0);
	assert_int_equal(ttl_resolve(c, 100001, 1, &got, &err), CODE(BAD_REQUEST));
	assert_int_equal(ttl_resolve(c, 999, 1, &got, &err), CODE(BAD_REQUEST));
	assert_int_equal(ttl_resolve(c, UINT64_MAX, 1, &got, &err), CODE(BAD_REQUEST));
	assert_int_equal(idle_resolve(UINT64_MAX, 1, &got, &err), CODE(BAD_REQUEST));
	assert_int_equal(idle_resolve(0, 3000, &got, &err), 0);
	assert_int_equal(got, 3000);
}

static void
test_quota(void **state)
{
	struct sandbox boxes[4] = {0};
	struct err err;

	(void)state;
	fresh();
	assert_int_equal(quota_check(&engine, "a", UINT64_C(1) << 30, &err), 0);
	assert_int_equal(quota_check(&engine, "a", UINT64_C(3) << 30, &err), CODE(QUOTA));
	for (size_t i = 0; i < 4; i++) {
		(void)snprintf(boxes[i].tenant, sizeof(boxes[i].tenant), "%s", i < 2 ? "a" : "b");
		boxes[i].limits.memory_bytes = UINT64_C(1) << 29;
		list_append(&engine.sandboxes, &boxes[i].link);
		engine.memory_bytes += UINT64_C(1) << 29;
		engine.sandboxes_n++;
		if (i == 0)
			assert_int_equal(quota_check(&engine, "a", UINT64_C(3) << 29, &err), 0);
		if (i == 0)
			assert_int_equal(quota_check(&engine, "a", (UINT64_C(3) << 29) + 1, &err),
				CODE(QUOTA));
		if (i == 1)
			assert_int_equal(quota_check(&engine, "a", 1 << 20, &err), CODE(QUOTA));
		if (i == 2)
			assert_int_equal(quota_check(&engine, "b", 1 << 20, &err), 0);
	}
	assert_int_equal(quota_check(&engine, "c", 1 << 20, &err), CODE(QUOTA));
	engine.sandboxes_n = 3;
	engine.memory_bytes = UINT64_C(4) << 30;
	assert_int_equal(quota_check(&engine, "c", 1, &err), CODE(QUOTA));
	assert_int_equal(quota_check(&engine, "c", UINT64_MAX, &err), CODE(QUOTA));
}

static void
test_rate(void **state)
{
	struct err err;
	unsigned n = 0;

	(void)state;
	fresh();
	while (rate_take(&engine, "a", 1000, &err) == 0)
		n++;
	assert_int_equal(n, 60);
	assert_int_equal(err.code, CODE(RATE));
	assert_int_equal(rate_take(&engine, "b", 1000, &err), 0);
	assert_int_equal(rate_take(&engine, "a", 1999, &err), CODE(RATE));
	assert_int_equal(rate_take(&engine, "a", 2000, &err), 0);
	assert_int_equal(rate_take(&engine, "a", 2000, &err), CODE(RATE));
	/* Fine steps add up the same. */
	for (n = 0; n < 10; n++)
		assert_int_equal(rate_take(&engine, "a", 2000 + n * 100, &err), CODE(RATE));
	assert_int_equal(rate_take(&engine, "a", 3000, &err), 0);
	/* A clock that jumps far fills it once. */
	for (n = 0; rate_take(&engine, "a", UINT64_C(1) << 60, &err) == 0; n++)
		continue;
	assert_int_equal(n, 60);
	/* A full bucket is forgotten. */
	assert_int_equal(rate_take(&engine, "c", (UINT64_C(1) << 60) + 60001, &err), 0);
	assert_ptr_equal(engine.rates.next, engine.rates.prev);
	rate_free_all(&engine);
	assert_true(list_empty(&engine.rates));
}

static int
labels_of(const char *text, size_t n)
{
	struct err err;

	return labels_check(view_of(text, n), &err);
}
#define LABELS(text) labels_of(text, sizeof(text) - 1)

static void
test_labels(void **state)
{
	struct buf many;

	(void)state;
	assert_int_equal(LABELS(""), 0);
	assert_int_equal(LABELS("a\0b\0"), 0);
	assert_int_equal(LABELS("a\0\0"), 0);
	assert_int_equal(LABELS("a\0b\0c\0d\0"), 0);
	assert_int_equal(LABELS("\0b\0"), CODE(BAD_REQUEST));
	assert_int_equal(LABELS("a\0b"), CODE(BAD_REQUEST));
	assert_int_equal(LABELS("a\0"), CODE(BAD_REQUEST));
	assert_int_equal(LABELS("a"), CODE(BAD_REQUEST));
	assert_int_equal(LABELS("a\0b\0a\0c\0"), CODE(BAD_REQUEST));
	assert_int_equal(LABELS("a\0\xff\0"), CODE(BAD_REQUEST));
	assert_int_equal(LABELS("\xc0\x80\0b\0"), CODE(BAD_REQUEST));
	buf_init(&many, 4096);
	for (unsigned i = 0; i < 64; i++) {
		buf_addf(&many, "k%u", i);
		buf_add(&many, "\0v\0", 3);
	}
	assert_int_equal(labels_of((const char *)many.p, many.n), 0);
	buf_add(&many, "x\0v\0", 4);
	assert_int_equal(labels_of((const char *)many.p, many.n), CODE(BAD_REQUEST));
	buf_done(&many);
	assert_true(labels_match(view_of("a\0b\0c\0d\0", 8), view_of("c\0d\0", 4)));
	assert_false(labels_match(view_of("a\0b\0c\0d\0", 8), view_of("c\0b\0", 4)));
	assert_false(labels_match(view_of("a\0b\0", 4), view_of("b\0b\0", 4)));
	assert_true(labels_match(view_of("a\0b\0", 4), view_of("", 0)));
}

static void
test_reason(void **state)
{
	const struct usage none = {.disk_free_bytes = 1, .inodes_free = 1};
	struct usage now = none;
	struct msg_job_ended end = {.end = JOB_END_EXITED};

	(void)state;
	assert_false(job_needs_usage(&end));
	assert_int_equal(job_reason_of(&end, &none, NULL), JOB_REASON_EXITED);
	/* A kill that a command survived does not change how it ended. */
	now.oom_kills = 1;
	assert_int_equal(job_reason_of(&end, &none, &now), JOB_REASON_EXITED);
	end.code = 1;
	assert_true(job_needs_usage(&end));
	assert_int_equal(job_reason_of(&end, &none, &now), JOB_REASON_OOM);
	assert_int_equal(job_reason_of(&end, &now, &now), JOB_REASON_EXITED);
	now = none;
	now.pids_refused = 1;
	assert_int_equal(job_reason_of(&end, &none, &now), JOB_REASON_PIDS);
	now = none;
	now.disk_free_bytes = 0;
	assert_int_equal(job_reason_of(&end, &none, &now), JOB_REASON_DISK);
	now = none;
	now.inodes_free = 0;
	assert_int_equal(job_reason_of(&end, &none, &now), JOB_REASON_DISK);
	end.end = JOB_END_SIGNALLED;
	assert_int_equal(job_reason_of(&end, &none, &none), JOB_REASON_SIGNALLED);
	end.end = JOB_END_NOT_STARTED;
	assert_false(job_needs_usage(&end));
	assert_int_equal(job_reason_of(&end, &none, NULL), JOB_REASON_NOT_STARTED);
	end.cancelled = true;
	assert_int_equal(job_reason_of(&end, &none, NULL), JOB_REASON_CANCELLED);
	end.timed_out = true;
	assert_int_equal(job_reason_of(&end, &none, NULL), JOB_REASON_TIMEOUT);
}

static void
test_expiry(void **state)
{
	(void)state;
	assert_false(token_over(0, UINT64_MAX));
	assert_false(token_over(100, 99));
	assert_true(token_over(100, 100));
	assert_true(token_over(100, 101));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_expiry),
		cmocka_unit_test(test_minima),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_quota),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
