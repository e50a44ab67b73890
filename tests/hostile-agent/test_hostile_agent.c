/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent that lies in each field of each frame of proto/channel.def, and in their order, against the real
 * relay. Whatever it does, the relay ends by itself with one RELAY_LOST to the engine and the exit code that
 * its README promises; it never crashes, never hangs, and never passes on what is not bounded.
 */
#include "world.h"

#include "lib/base/clock.h"
#include "lib/base/propose_bounds.h"
#include "lib/channel/channel.h"
#include "lib/ipc/wire.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { EXIT_PROTOCOL = 2, EXIT_SILENT = 3 };

/* The table itself: rows of frames, each followed by its fields. */
struct row {
	enum { ROW_FRAME, ROW_FIELD, ROW_END } kind;
	unsigned frame;
	const char *type, *name; /* of a field; sender and name of a frame */
	size_t bound;
};

static const struct row rows[] = {
#define FRAME(n, sender, prose) {ROW_FRAME, FRAME_##n, #sender, #n, 0},
#define FIELD(...)              FIELD_ROW(__VA_ARGS__, 0, 0)
#define FIELD_ROW(t, n, b, ...) {ROW_FIELD, 0, #t, #n, b},
#define END                     {ROW_END, 0, "", "", 0},
#include "proto/channel.def"
#undef FRAME
#undef FIELD
#undef END
};

static struct world world;

/* A relay with a live agent (us) and, if a kind is given, one running job on stream 1. */
struct scene {
	bool no_hello, no_job;
	struct msg_job_start job;
	bool attach;
	struct result result;
};

static void
channel_write(const void *p, size_t n)
{
	const uint8_t *at = p;

	while (n > 0) {
		ssize_t r = send(world.channel, at, n, MSG_NOSIGNAL);

		if (r < 0)
			return; /* the relay had enough: that is looked at elsewhere */
		at += r;
		n -= (size_t)r;
	}
}

static void
put_raw(uint32_t length, uint16_t type, uint16_t flags, uint32_t stream, struct view body)
{
	auto_buf struct buf b = {.max = 1 << 20};

	wire_put_u32(&b, length);
	wire_put_u16(&b, type);
	wire_put_u16(&b, flags);
	wire_put_u32(&b, stream);
	buf_add_view(&b, body);
	channel_write(b.p, b.n);
}

static void
put(enum frame_type type, uint32_t stream, struct view body)
{
	put_raw((uint32_t)body.n, (uint16_t)type, 0, stream, body);
}

#define PUT(stream, NAME, name, ...)                        \
	do {                                                \
		const struct frame_##name m_ = __VA_ARGS__; \
		auto_buf struct buf b_ = {.max = 1 << 20};  \
		frame_##name##_put(&b_, &m_);               \
		put(FRAME_##NAME, stream, buf_view(&b_));   \
	} while (0)

/* Waits for a frame of the relay. */
static void
expect_frame(enum frame_type type)
{
	struct channel_in in;
	struct frame f;
	struct err err = {0};
	int r;

	channel_in_init(&in, false);
	while ((r = channel_in_next(&in, &f, &err)) == 0)
		assert_true(channel_in_fill(&in, world.channel, &err) > 0);
	assert_int_equal(r, 1);
	assert_int_equal(f.type, type);
	channel_in_done(&in);
}

static void
scene_open(struct scene *s)
{
	world_start(&world, &(struct world_options){.no_agent = true});
	result_init(&s->result);
	if (s->no_hello)
		return;
	PUT(0, HELLO, hello, {.version = CHANNEL_VERSION});
	world_open(&world);
	if (s->no_job)
		return;
	s->job.job.b[0] = 1;
	if (s->job.kind == JOB_KIND_EXEC)
		s->job.argv = view_of("true", 5);
	world_begin(&world, &s->job, s->attach, &s->result);
	expect_frame(FRAME_START);
}

/* The relay gave up: one RELAY_LOST, then its end with this status. */
static void
assert_lost(struct scene *s, int status, unsigned ms, const char *what)
{
	struct ipc_msg m;
	int got;

	while (world.engine >= 0 && engine_next(&world, &m, ms))
		;
	if (world.lost_count != 1)
		fail_msg("%s: %u times RELAY_LOST", what, world.lost_count);
	got = relay_wait(&world, 2000);
	if (got != status)
		fail_msg("%s: the relay ended with %d, not %d (%s)", what, got, status,
			world.lost.text);
	assert_true(world.lost.code < 0);
	result_done(&s->result);
	world_stop(&world);
}

/* The relay goes on as if nothing was. */
static void
assert_unharmed(struct scene *s)
{
	struct ipc_msg m;

	PUT(1, ENDED, ended, {.end = JOB_END_EXITED, .code = 0});
	assert_true(engine_next(&world, &m, 5000));
	assert_int_equal(m.type, MSG_JOB_ENDED);
	result_done(&s->result);
	world_stop(&world);
}

/* ---- every field of every frame ---- */

static size_t
scalar_size(const char *type)
{
	static const struct {
		const char *type;
		size_t n;
	} sizes[] = {{"u8", 1}, {"u16", 2}, {"u32", 4}, {"u64", 8}, {"i32", 4}, {"i64", 8}};

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		if (strcmp(sizes[i].type, type) == 0)
			return sizes[i].n;
	return strcmp(type, "str") == 0 || strcmp(type, "blob") == 0 ? 0 : 1; /* bool or an enum */
}

/* The kind of job in which the frame could come, and its stream. */
static struct scene
scene_for(enum frame_type type)
{
	struct scene s = {.job = {.kind = JOB_KIND_EXEC}};

	if (type == FRAME_HELLO)
		s.no_hello = true;
	if (type == FRAME_ENTRY)
		s.job.kind = JOB_KIND_FILE_LIST;
	if (type == FRAME_CREDIT)
		s.job.stdin_open = true;
	return s;
}

static uint32_t
stream_for(enum frame_type type)
{
	return type == FRAME_HELLO || type == FRAME_PONG || type == FRAME_PROPOSE ? 0 : 1;
}

/* A body that a decoder takes; *ret_at is where field number `field` begins. */
static void
valid_body(const struct row *frame, size_t field, struct buf *b, size_t *ret_at)
{
	size_t i = 0;

	for (const struct row *r = frame + 1; r->kind == ROW_FIELD; r++, i++) {
		size_t n = scalar_size(r->type);

		if (i == field)
			*ret_at = b->n;
		if (n == 0) {
			wire_put_u32(b, 3);
			buf_add_str(b, "abc");
		}
		for (size_t k = 0; k < n; k++)
			buf_add_byte(b, k + 1 == n && strcmp(r->name, "version") == 0
						? CHANNEL_VERSION
						: 0);
	}
}

static size_t
count_fields(const struct row *frame)
{
	size_t n = 0;

	while (frame[n + 1].kind == ROW_FIELD)
		n++;
	return n;
}

static void
attack(const struct row *frame, struct view body, const char *how, const char *name)
{
	struct scene s = scene_for((enum frame_type)frame->frame);
	char what[128];

	(void)snprintf(what, sizeof(what), "%s.%s %s", frame->name, name, how);
	scene_open(&s);
	put((enum frame_type)frame->frame, stream_for((enum frame_type)frame->frame), body);
	assert_lost(&s, EXIT_PROTOCOL, 5000, what);
}

/* Writes n bytes of this value over the field and sends. */
static void
attack_field(const struct row *frame, size_t field, size_t n, uint64_t value, const char *how)
{
	auto_buf struct buf b = {.max = 1 << 17};
	size_t at = 0;

	valid_body(frame, field, &b, &at);
	for (size_t k = 0; k < n; k++)
		b.p[at + k] = (uint8_t)(value >> 8 * (n - 1 - k));
	attack(frame, buf_view(&b), how, frame[1 + field].name);
}

static void
attack_length(const struct row *frame, size_t field, uint32_t length, const char *how)
{
	attack_field(frame, field, 4, length, how);
}

static void
attack_fields(const struct row *frame)
{
	size_t n = count_fields(frame);

	for (size_t i = 0; i < n; i++) {
		const struct row *f = &frame[1 + i];
		size_t size = scalar_size(f->type);

		if (size == 0) {
			attack_length(frame, i, 2, "shorter than its bytes");
			attack_length(frame, i, 4, "longer than its bytes");
			attack_length(frame, i, (uint32_t)f->bound + 1, "above its bound");
			attack_length(frame, i, UINT32_MAX, "of 4 GiB");
			continue;
		}
		if (strcmp(f->name, "mtime") == 0 || strcmp(f->name, "number") == 0)
			continue; /* any value is one */
		attack_field(frame, i, size, UINT64_MAX, "all ones");
		attack_field(frame, i, size, 1ull << (8 * size - 1), "top bit");
	}
}

static void
attack_lengths(const struct row *frame)
{
	auto_buf struct buf b = {.max = 1 << 17};
	size_t at = 0;

	valid_body(frame, 0, &b, &at);
	for (size_t n = 0; n < b.n; n++)
		attack(frame, view_of(b.p, n), "cut", "body");
	buf_add_byte(&b, 0);
	attack(frame, buf_view(&b), "with one byte more", "body");
}

static void
every_field_of_every_frame(void **state)
{
	unsigned frames = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (rows[i].kind != ROW_FRAME || strcmp(rows[i].type, "host") == 0)
			continue;
		attack_fields(&rows[i]);
		attack_lengths(&rows[i]);
		frames++;
	}
	assert_int_equal(frames, 8); /* HELLO CREDIT STDOUT STDERR ENTRY ENDED PONG PROPOSE */
}

/* A number that is open, and more open ones than there may be; what is no JSON is answered and not held against it. */
static void
proposals_out_of_bounds(void **state)
{
	static const char text[] = "{\"operation\":\"refund\",\"arguments\":{}}";

	(void)state;
	for (unsigned n = 2; n <= PROPOSE_LIVE_MAX + 1; n += PROPOSE_LIVE_MAX - 1) {
		struct scene s = {.job = {.kind = JOB_KIND_EXEC}};

		scene_open(&s);
		for (unsigned i = 0; i < 20; i++)
			PUT(0, PROPOSE, propose, {.number = 100 + i, .text = view_str("{")});
		for (unsigned i = 0; i < n; i++)
			PUT(0, PROPOSE, propose,
				{.number = n == 2 ? 7 : i, .text = view_str(text)});
		assert_lost(&s, EXIT_PROTOCOL, 5000, "proposals out of bounds");
	}
}

static void
frames_of_the_host(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_buf struct buf b = {.max = 1 << 17};
		size_t at = 0;

		if (rows[i].kind != ROW_FRAME || strcmp(rows[i].type, "host") != 0)
			continue;
		valid_body(&rows[i], 0, &b, &at);
		attack(&rows[i], buf_view(&b), "from the guest", "frame");
	}
}

/* ---- headers ---- */

static void
headers(void **state)
{
	static const struct {
		const char *what;
		uint32_t length;
		uint16_t type, flags;
		uint32_t stream;
	} cases[] = {
		{"flags", 7, FRAME_STDOUT, 1, 1},
		{"flags, high", 7, FRAME_STDOUT, 0x8000, 1},
		{"type behind the last", 7, FRAME_MAX, 0, 1},
		{"type 65535", 7, 0xffff, 0, 1},
		{"length above the row", 32773, FRAME_STDOUT, 0, 1},
		{"length above any", 65525, FRAME_STDOUT, 0, 1},
		{"length of 2 GiB", 0x80000000, FRAME_STDOUT, 0, 1},
		{"length of 4 GiB", 0xffffffff, FRAME_STDOUT, 0, 1},
		{"stream 0", 7, FRAME_STDOUT, 0, 0},
		{"stream 2", 7, FRAME_STDOUT, 0, 2},
		{"stream 2^32 - 1", 7, FRAME_STDOUT, 0, 0xffffffff},
		{"ENDED of stream 0", 7, FRAME_ENDED, 0, 0},
		{"PONG on a stream", 8, FRAME_PONG, 0, 1},
		{"HELLO again", 4, FRAME_HELLO, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct scene s = {.job = {.kind = JOB_KIND_EXEC}};

		scene_open(&s);
		put_raw(cases[i].length, cases[i].type, cases[i].flags, cases[i].stream,
			view_of("\0\0\0\3abc", 7));
		if (cases[i].length == 8)
			channel_write("", 1);
		assert_lost(&s, EXIT_PROTOCOL, 5000, cases[i].what);
	}
}

static void
half_a_frame_then_the_end(void **state)
{
	static const uint8_t frame[] = {
		0, 0, 0, 7, 0, FRAME_STDOUT, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3, 'a', 'b', 'c'};

	(void)state;
	for (size_t n = 0; n < sizeof(frame); n++) {
		struct scene s = {.job = {.kind = JOB_KIND_EXEC}};

		scene_open(&s);
		channel_write(frame, n);
		(void)shutdown(world.channel, SHUT_RDWR);
		assert_lost(&s, EXIT_SILENT, 5000, "half a frame");
	}
}

/* ---- order, kinds, values ---- */

static void
out_of_order(void **state)
{
	struct scene early = {.no_hello = true}, none = {.no_job = true};

	(void)state;
	scene_open(&early);
	PUT(0, PONG, pong, {.value = 0});
	assert_lost(&early, EXIT_PROTOCOL, 5000, "PONG before HELLO");
	scene_open(&none);
	PUT(1, ENDED, ended, {.end = JOB_END_EXITED});
	assert_lost(&none, EXIT_PROTOCOL, 5000, "ENDED before a job");
	for (int i = 0; i < 4; i++) {
		struct scene s = {.job = {.kind = JOB_KIND_EXEC, .stdin_open = true}};

		scene_open(&s);
		PUT(1, ENDED, ended, {.end = JOB_END_EXITED});
		if (i == 0)
			PUT(1, ENDED, ended, {.end = JOB_END_EXITED});
		if (i == 1)
			PUT(1, STDOUT, stdout, {.data = view_str("x")});
		if (i == 2)
			PUT(1, CREDIT, credit, {.bytes = 1});
		if (i == 3)
			PUT(1, STDERR, stderr, {.data = view_str("x")});
		assert_lost(&s, EXIT_PROTOCOL, 5000, "a frame after ENDED");
	}
}

static void
kinds_that_do_not_say_that(void **state)
{
	(void)state;
	for (int kind = 0; kind < JOB_KIND_MAX; kind++)
		for (int frame = 0; frame < 4; frame++) {
			struct scene s = {.job = {.kind = (enum job_kind)kind}};
			bool exec = kind == JOB_KIND_EXEC,
			     out = exec || kind == JOB_KIND_FILE_READ || kind == JOB_KIND_TREE_DOWN;
			bool in = kind == JOB_KIND_FILE_WRITE || kind == JOB_KIND_TREE_UP;

			if ((frame == 0 && out) || (frame == 1 && exec) ||
				(frame == 2 && kind == JOB_KIND_FILE_LIST))
				continue;
			(void)in;
			scene_open(&s);
			if (frame == 0)
				PUT(1, STDOUT, stdout, {.data = view_str("x")});
			if (frame == 1)
				PUT(1, STDERR, stderr, {.data = view_str("x")});
			if (frame == 2)
				PUT(1, ENTRY, entry, {.name = view_str("x")});
			if (frame == 3)
				PUT(1, CREDIT, credit,
					{.bytes = 1}); /* nothing was sent, whether it takes stdin or not */
			assert_lost(&s, EXIT_PROTOCOL, 5000, "a frame of another kind of job");
		}
}

static void
terminal_has_no_stderr(void **state)
{
	struct scene s = {.job = {.kind = JOB_KIND_EXEC, .pty = true}};

	(void)state;
	scene_open(&s);
	PUT(1, STDERR, stderr, {.data = view_str("x")});
	assert_lost(&s, EXIT_PROTOCOL, 5000, "stderr of a terminal");
}

static void
empty_data(void **state)
{
	struct scene s = {.job = {.kind = JOB_KIND_EXEC}};

	(void)state;
	scene_open(&s);
	PUT(1, STDOUT, stdout, {.data = view_str("")});
	assert_lost(&s, EXIT_PROTOCOL, 5000, "an empty frame");
}

static void
names_of_entries(void **state)
{
	static const struct {
		const char *name;
		size_t n;
	} names[] = {{"", 0}, {".", 1}, {"..", 2}, {"a/b", 3}, {"/", 1}, {"a\0b", 3}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct scene s = {.job = {.kind = JOB_KIND_FILE_LIST}};

		scene_open(&s);
		PUT(1, ENTRY, entry, {.name = view_of(names[i].name, names[i].n)});
		assert_lost(&s, EXIT_PROTOCOL, 5000, "a name that is none");
	}
}

static void
answers_of_a_stat(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct scene s = {.job = {.kind = JOB_KIND_FILE_STAT}};

		scene_open(&s);
		if (i == 0)
			PUT(1, ENTRY, entry, {.name = view_str("name")});
		if (i == 1) {
			PUT(1, ENTRY, entry, {0});
			PUT(1, ENTRY, entry, {0});
		}
		if (i == 2)
			PUT(1, ENDED, ended, {.end = JOB_END_EXITED});
		assert_lost(&s, EXIT_PROTOCOL, 5000, "a stat with no answer, two, or a name");
	}
}

static void
ends_that_cannot_be(void **state)
{
	static const struct frame_ended cases[] = {
		{.end = JOB_END_EXITED, .code = -1},
		{.end = JOB_END_EXITED, .code = 256},
		{.end = JOB_END_SIGNALLED, .code = 0},
		{.end = JOB_END_SIGNALLED, .code = 65},
		{.end = JOB_END_NOT_STARTED, .code = 0},
		{.end = JOB_END_NOT_STARTED, .code = 4096},
		{.end = JOB_END_EXITED, .cpu_us = 1ull << 53},
		{.end = JOB_END_EXITED, .memory_peak_bytes = 1ull << 53},
		{.end = JOB_END_SIGNALLED, .code = 9, .killed_by_timeout = true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		for (int timeout = 0; timeout < 2; timeout++) {
			struct scene s = {
				.job = {.kind = JOB_KIND_EXEC, .timeout_ms = timeout ? 60000 : 0}};

			scene_open(&s);
			PUT(1, ENDED, ended, cases[i]);
			assert_lost(&s, EXIT_PROTOCOL, 5000, "an end that cannot be");
		}
}

static void
more_than_its_credit(void **state)
{
	static uint8_t data[CHANNEL_DATA_MAX];
	static const struct {
		enum job_kind kind;
		bool live, entry;
	} cases[] = {{JOB_KIND_EXEC, true, false}, {JOB_KIND_FILE_READ, false, false},
		{JOB_KIND_FILE_LIST, false, true}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct scene s = {.job = {.kind = cases[i].kind, .live = cases[i].live}};

		scene_open(&s);
		/* No session takes anything, so the first credit is all there is. */
		for (int k = 0; k < 8 && !cases[i].entry; k++)
			PUT(1, STDOUT, stdout, {.data = view_of(data, sizeof(data))});
		for (int k = 0; k < 2000 && cases[i].entry; k++)
			PUT(1, ENTRY, entry,
				{.name = view_of(
					 "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
					 "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn",
					 112)});
		PUT(1, STDOUT, stdout, {.data = view_of(data, 1)});
		assert_lost(&s, EXIT_PROTOCOL, 5000, "more than its credit");
	}
}

static void
exactly_its_credit(void **state)
{
	static uint8_t data[CHANNEL_DATA_MAX];
	struct scene s = {.job = {.kind = JOB_KIND_EXEC, .live = true}};

	(void)state;
	scene_open(&s);
	for (int k = 0; k < 8; k++)
		PUT(1, STDOUT, stdout, {.data = view_of(data, sizeof(data))});
	assert_unharmed(&s);
}

static void
a_timeout_in_time_is_believed(void **state)
{
	struct scene s = {.job = {.kind = JOB_KIND_EXEC, .timeout_ms = 50}};
	struct msg_job_ended ended;
	struct err err = {0};
	struct ipc_msg m;

	(void)state;
	scene_open(&s);
	PUT(1, ENDED, ended, {.end = JOB_END_SIGNALLED, .code = 9, .killed_by_timeout = true});
	assert_true(engine_next(&world, &m, 5000));
	assert_int_equal(msg_job_ended_get(m.body, &ended, &err), 0);
	assert_true(ended.timed_out);
	result_done(&s.result);
	world_stop(&world);
}

/* ---- floods and silence ---- */

static unsigned long
relay_rss_kib(void)
{
	char path[64], line[256];
	unsigned long kib = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", world.relay);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL)
		(void)sscanf(line, "VmRSS: %lu", &kib);
	(void)fclose(f);
	return kib;
}

/* Takes and forgets what the relay sends, so that its credit does not pile up. */
static void
discard(void)
{
	static uint8_t nowhere[65536];

	while (recv(world.channel, nowhere, sizeof(nowhere), MSG_DONTWAIT) > 0)
		;
}

static void
flood_is_bounded(void **state)
{
	static uint8_t data[CHANNEL_DATA_MAX];
	struct scene s = {.job = {.kind = JOB_KIND_EXEC}};
	uint64_t sent = 0, credit = CHANNEL_CREDIT;
	struct channel_in in;

	(void)state;
	scene_open(&s);
	channel_in_init(&in, false);
	while (sent < 100u << 20) {
		struct err err = {0};
		struct frame f;

		while (credit >= sizeof(data)) {
			PUT(1, STDOUT, stdout, {.data = view_of(data, sizeof(data))});
			credit -= sizeof(data);
			sent += sizeof(data);
		}
		assert_true(channel_in_fill(&in, world.channel, &err) > 0);
		while (channel_in_next(&in, &f, &err) == 1) {
			struct frame_credit m;

			assert_int_equal(f.type, FRAME_CREDIT);
			assert_int_equal(frame_credit_get(f.body, &m, &err), 0);
			credit += m.bytes;
		}
	}
	channel_in_done(&in);
	if (!SANITIZED)
		assert_true(relay_rss_kib() < 6000);
	assert_unharmed(&s);
}

static void
one_byte_at_a_time(void **state)
{
	struct scene s = {.job = {.kind = JOB_KIND_EXEC, .live = true}, .attach = true};

	(void)state;
	scene_open(&s);
	for (int i = 0; i < 5000; i++)
		PUT(1, STDOUT, stdout, {.data = view_str("x")});
	PUT(1, ENDED, ended, {.end = JOB_END_EXITED});
	assert_true(world_until(&world, &s.result, is_complete, 5000));
	assert_int_equal(s.result.out.n, 5000);
	result_done(&s.result);
	world_stop(&world);
}

static void
garbage(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct scene s = {.job = {.kind = JOB_KIND_EXEC}};
		uint8_t noise[4096];
		uint64_t x = seed * 0x9e3779b97f4a7c15ull;

		for (size_t i = 0; i < sizeof(noise); i++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			noise[i] = (uint8_t)(x >> 32);
		}
		noise[0] =
			(uint8_t)(seed % 3 == 0
					  ? 0
					  : noise[0] |
						    1); /* else a length that never ends the frame is refused too */
		scene_open(&s);
		channel_write(noise, sizeof(noise));
		(void)shutdown(world.channel, SHUT_WR);
		while (engine_next(&world, &(struct ipc_msg){0}, 5000))
			;
		assert_int_equal(world.lost_count, 1);
		assert_in_range(relay_wait(&world, 2000), EXIT_PROTOCOL, EXIT_SILENT);
		result_done(&s.result);
		world_stop(&world);
	}
}

/* The agent answers nothing: after a cancellation, after a timeout, and to no one ever. */
static void
silence(void **state)
{
	struct scene cancelled = {.job = {.kind = JOB_KIND_EXEC}},
		     late = {.job = {.kind = JOB_KIND_EXEC, .timeout_ms = 100}};
	uint64_t start;

	(void)state;
	scene_open(&cancelled);
	start = clock_mono_ms();
	SEND(&world, JOB_SIGNAL, job_signal, -1, {.job = cancelled.job.job});
	assert_lost(&cancelled, EXIT_SILENT, 5000, "silence after a cancellation");
	assert_in_range(clock_mono_ms() - start, 1900, 3000);
	scene_open(&late);
	start = clock_mono_ms();
	assert_lost(&late, EXIT_SILENT, 5000, "silence after a timeout");
	assert_in_range(clock_mono_ms() - start, 2000, 3100);
}

static void
frozen_is_not_silent(void **state)
{
	struct scene s = {.job = {.kind = JOB_KIND_EXEC, .timeout_ms = 100}};
	struct ipc_msg m;

	(void)state;
	scene_open(&s);
	SEND(&world, RELAY_FREEZE, relay_freeze, -1, {.frozen = true});
	assert_false(engine_next(&world, &m, 4500));
	SEND(&world, RELAY_FREEZE, relay_freeze, -1, {.frozen = false});
	assert_false(engine_next(&world, &m, 500));
	assert_int_equal(world.lost_count, 0);
	discard();
	assert_unharmed(&s);
}

/* C22: neither timeout nor cancellation, and still the caller gets an answer. And: no HELLO at all. */
static void
c22_silence_for_ever(void **state)
{
	struct scene mute = {.no_hello = true}, stuck = {.job = {.kind = JOB_KIND_EXEC}};
	struct world first;

	(void)state;
	scene_open(&mute);
	first = world;
	scene_open(&stuck);
	assert_lost(&stuck, EXIT_SILENT, 40000, "no answer to PING");
	world = first;
	assert_lost(&mute, EXIT_SILENT, 20000, "no HELLO");
}

static void
reads_nothing(void **state)
{
	static char argv[160000];
	struct scene s = {.no_job = true};
	struct ipc_msg m;

	(void)state;
	memset(argv, 'x', sizeof(argv) - 1);
	scene_open(&s);
	/* The table of jobs is full long before the relay's memory is. */
	for (unsigned i = 0; i < 100; i++) {
		struct msg_job_start start = {.job = {.b = {7, (uint8_t)i}},
			.kind = JOB_KIND_EXEC,
			.argv = view_of(argv, sizeof(argv))};

		SEND(&world, JOB_START, job_start, -1, start);
	}
	for (unsigned i = 0; i < 100 - 64; i++) {
		assert_true(engine_next(&world, &m, 5000));
		assert_int_equal(m.type, MSG_JOB_ENDED);
	}
	if (!SANITIZED)
		assert_true(relay_rss_kib() < 24000);
	(void)shutdown(world.channel, SHUT_RDWR);
	assert_lost(&s, EXIT_SILENT, 5000, "the end");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exactly_its_credit),
		cmocka_unit_test(every_field_of_every_frame),
		cmocka_unit_test(proposals_out_of_bounds),
		cmocka_unit_test(frames_of_the_host),
		cmocka_unit_test(headers),
		cmocka_unit_test(half_a_frame_then_the_end),
		cmocka_unit_test(out_of_order),
		cmocka_unit_test(kinds_that_do_not_say_that),
		cmocka_unit_test(terminal_has_no_stderr),
		cmocka_unit_test(empty_data),
		cmocka_unit_test(names_of_entries),
		cmocka_unit_test(answers_of_a_stat),
		cmocka_unit_test(ends_that_cannot_be),
		cmocka_unit_test(more_than_its_credit),
		cmocka_unit_test(a_timeout_in_time_is_believed),
		cmocka_unit_test(flood_is_bounded),
		cmocka_unit_test(one_byte_at_a_time),
		cmocka_unit_test(garbage),
		cmocka_unit_test(silence),
		cmocka_unit_test(frozen_is_not_silent),
		cmocka_unit_test(reads_nothing),
		cmocka_unit_test(c22_silence_for_ever),
	};

	if (getuid() != 0)
		return 77; /* skipped: the relay is started with another uid */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
