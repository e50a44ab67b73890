/* SPDX-License-Identifier: Apache-2.0 */
/* Every refusal of the engine, and that a tenant sees nothing of another. */
#include "play.h"

#include "lib/base/hex.h"
#include "lib/base/sha256.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static int
setup(void **state)
{
	static struct play play;

	play_open(&play);
	play_start(&play);
	*state = &play;
	return 0;
}

static int
teardown(void **state)
{
	play_close(*state);
	return 0;
}

#define CREATE(...)                                     \
	ASK(p, SANDBOX_CREATE, sandbox_create,          \
		{.caller = as_root,                     \
			.tenant = view_str("acme"),     \
			.template = view_str("python"), \
			__VA_ARGS__})

static void
test_callers(void **state)
{
	struct play *p = *state;
	struct caller none = {0}, stranger = play_local(p, 1, 4711),
		      unknown = {.kind = CALLER_KIND_TOKEN, .token = {1}};
	struct caller admin = play_local(p, 2, 1000);
	struct caller token = play_token(p, "acme", "", 7);

	ASK(p, WHOAMI, whoami, {.caller = none});
	play_refused(p, ERROR_UNAUTHORIZED);
	ASK(p, WHOAMI, whoami, {.caller = unknown});
	play_refused(p, ERROR_UNAUTHORIZED);
	ASK(p, WHOAMI, whoami, {.caller = stranger});
	play_refused(p, ERROR_FORBIDDEN);
	ASK(p, WHOAMI, whoami, {.caller = admin});
	ANSWER(p, PRINCIPAL, principal, who);
	assert_true(who.admin);
	assert_true(view_is(who.name, "uid:1000"));
	ASK(p, WHOAMI, whoami, {.caller = token});
	ANSWER(p, PRINCIPAL, principal, me);
	assert_false(me.admin);
	assert_true(view_is(me.tenant, "acme"));
	ASK(p, TOKEN_REVOKE, token_revoke, {.caller = token, .prefix = view_str("dml_7")});
	ANSWER(p, DONE, done, done);
	ASK(p, WHOAMI, whoami, {.caller = token});
	play_refused(p, ERROR_UNAUTHORIZED);
}

/* Every request with each kind of caller that may not: nothing is answered but the refusal. */
static void
test_every_request(void **state)
{
	struct play *p = *state;
	const struct caller bad[] = {
		{0}, play_local(p, 1, 4711), {.kind = CALLER_KIND_TOKEN, .token = {9}}};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		enum error want = i == 1 ? ERROR_FORBIDDEN : ERROR_UNAUTHORIZED;

#define DENIED(NAME, name, ...)                              \
	ASK(p, NAME, name, {.caller = bad[i], __VA_ARGS__}); \
	play_refused(p, want)
		DENIED(WHOAMI, whoami);
		DENIED(TOKEN_CREATE, token_create);
		DENIED(TOKEN_LIST, token_list);
		DENIED(TOKEN_REVOKE, token_revoke, .prefix = view_str("dml_1"));
		DENIED(SANDBOX_CREATE, sandbox_create, .template = view_str("python"));
		DENIED(SANDBOX_LIST, sandbox_list);
		DENIED(SANDBOX_GET, sandbox_get);
		DENIED(SANDBOX_KILL, sandbox_kill);
		DENIED(SANDBOX_FREEZE, sandbox_freeze);
		DENIED(SANDBOX_LIFE, sandbox_life);
		DENIED(SANDBOX_USAGE, sandbox_usage);
		DENIED(JOB_RUN, job_run);
		DENIED(JOB_ATTACH, job_attach);
		DENIED(JOB_GET, job_get);
		DENIED(JOB_LIST, job_list);
		DENIED(JOB_KILL, job_kill);
		DENIED(CELL_BEGIN, cell_begin);
		DENIED(CELL_END, cell_end);
		DENIED(TASK_CREATE, task_create, .template = view_str("python"));
		DENIED(TASK_LIST, task_list);
		DENIED(TASK_GET, task_get);
		DENIED(TASK_CLOSE, task_close);
		DENIED(TASK_RESUME, task_resume);
		DENIED(INPUT_OPEN, input_open);
		DENIED(INPUT_LIST, input_list);
		DENIED(INPUT_DELETE, input_delete);
		DENIED(TEMPLATE_LIST, template_list);
		DENIED(TEMPLATE_GET, template_get);
		DENIED(AUDIT_READ, audit_read);
	}
	play_want_silence(p, p->supervisor, 50);
}

/*
 * Lists show one's own: of the tenant `other` there are two tasks and this sandbox. Not inline: with a sanitizer each message has its own place in
 * the frame.
 */
__attribute__((noinline)) static void
lists_show_own(struct play *p, struct caller other, const struct id *own)
{
	ASK(p, SANDBOX_LIST, sandbox_list, {.caller = other});
	ANSWER(p, SANDBOX_ROW, sandbox_row, listed);
	assert_true(id_eq(&listed.sandbox, own));
	ANSWER(p, END, end, end);
	ASK(p, TASK_LIST, task_list, {.caller = other});
	for (int i = 0; i < 2; i++) {
		ANSWER(p, TASK_ROW, task_row, task_row);
		assert_true(view_is(task_row.tenant, "other"));
	}
	ANSWER(p, END, end, task_end);
	ASK(p, TASK_LIST, task_list, {.caller = other, .label = view_of("ticket\00048221\0", 13)});
	ANSWER(p, END, end, label_end);
	ASK(p, TOKEN_LIST, token_list, {.caller = other});
	ANSWER(p, TOKEN_ROW, token_row, token);
	assert_true(view_is(token.tenant, "other"));
	ANSWER(p, END, end, token_end);
}

/* Whatever a tenant names of another: not found, and nothing happens. */
static void
test_isolation(void **state)
{
	struct play *p = *state;
	struct caller other = play_token(p, "other", "", 8);
	struct id sandbox, task, job;
	char name[ID_TEXT];

	CREATE(.metadata = view_of("ticket\00048221\0", 13));
	int relay = play_spawn(p, &sandbox);
	ANSWER(p, SANDBOX_ROW, sandbox_row, row);
	task = row.task;
	play_run(p, relay, &sandbox, &job);
	id_text(&task, ID_TASK, name);
#define UNSEEN(NAME, name, ...)                             \
	ASK(p, NAME, name, {.caller = other, __VA_ARGS__}); \
	play_refused(p, ERROR_NOT_FOUND)
	UNSEEN(SANDBOX_GET, sandbox_get, .sandbox = sandbox);
	UNSEEN(SANDBOX_KILL, sandbox_kill, .sandbox = sandbox);
	UNSEEN(SANDBOX_FREEZE, sandbox_freeze, .sandbox = sandbox, .frozen = true);
	UNSEEN(SANDBOX_LIFE, sandbox_life, .sandbox = sandbox, .set = 4);
	UNSEEN(SANDBOX_USAGE, sandbox_usage, .sandbox = sandbox);
	UNSEEN(JOB_RUN, job_run, .sandbox = sandbox, .uid = 10001, .argv = view_of("true", 5));
	UNSEEN(JOB_ATTACH, job_attach, .sandbox = sandbox, .job = job);
	UNSEEN(JOB_GET, job_get, .sandbox = sandbox, .job = job);
	UNSEEN(JOB_LIST, job_list, .sandbox = sandbox);
	UNSEEN(JOB_KILL, job_kill, .sandbox = sandbox, .job = job);
	UNSEEN(CELL_BEGIN, cell_begin, .sandbox = sandbox, .job = job);
	UNSEEN(CELL_END, cell_end, .sandbox = sandbox, .job = job);
	UNSEEN(TASK_GET, task_get, .name = view_str(name));
	UNSEEN(TASK_GET, task_get, .name = view_str("48221"));
	UNSEEN(TASK_CLOSE, task_close, .task = task);
	UNSEEN(TASK_RESUME, task_resume, .task = task);
	UNSEEN(INPUT_OPEN, input_open, .task = task, .path = view_str("/a"));
	UNSEEN(INPUT_LIST, input_list, .task = task);
	UNSEEN(INPUT_DELETE, input_delete, .task = task, .path = view_str("/workspace/a"));
	UNSEEN(AUDIT_READ, audit_read, .name = view_str(name));
	UNSEEN(AUDIT_READ, audit_read, .name = view_str("48221"));
	UNSEEN(AUDIT_READ, audit_read, .name = view_str("host"));
	UNSEEN(SANDBOX_CREATE, sandbox_create, .task = task, .template = view_str("python"));
	UNSEEN(TASK_LIST, task_list, .after = task);
	UNSEEN(TOKEN_REVOKE, token_revoke, .prefix = view_str("dml_9"));
	play_token(p, "acme", "", 9);
	UNSEEN(TOKEN_REVOKE, token_revoke, .prefix = view_str("dml_9"));
	/* A job of one's own tenant, named with somebody else's sandbox, and the other way round. */
	ASK(p, SANDBOX_CREATE, sandbox_create, {.caller = other, .template = view_str("python")});
	struct id own;
	int own_relay = play_spawn(p, &own);
	ANSWER(p, SANDBOX_ROW, sandbox_row, own_row);
	assert_true(view_is(own_row.tenant, "other"));
	UNSEEN(JOB_GET, job_get, .sandbox = own, .job = job);
	UNSEEN(JOB_ATTACH, job_attach, .sandbox = own, .job = job);
	UNSEEN(JOB_KILL, job_kill, .sandbox = own, .job = job);
	UNSEEN(CELL_BEGIN, cell_begin, .sandbox = own, .job = job);
	UNSEEN(CELL_END, cell_end, .sandbox = own, .job = job);
	ASK(p, SANDBOX_CREATE, sandbox_create,
		{.caller = other, .tenant = view_str("acme"), .template = view_str("python")});
	play_refused(p, ERROR_FORBIDDEN);
	ASK(p, TASK_CREATE, task_create,
		{.caller = other, .tenant = view_str("acme"), .template = view_str("python")});
	play_refused(p, ERROR_FORBIDDEN);
	/* The same ticket number in two tenants: each has its own, also when the other's is newer. */
	ASK(p, TASK_CREATE, task_create,
		{.caller = other,
			.template = view_str("python"),
			.labels = view_of("ticket\0007\0", 9)});
	ANSWER(p, TASK_ROW, task_row, theirs);
	ASK(p, TASK_CREATE, task_create,
		{.caller = as_root,
			.tenant = view_str("acme"),
			.template = view_str("python"),
			.labels = view_of("ticket\0007\0", 9)});
	ANSWER(p, TASK_ROW, task_row, newer);
	ASK(p, TASK_GET, task_get, {.caller = other, .name = view_str("7")});
	ANSWER(p, TASK_ROW, task_row, found);
	assert_true(id_eq(&found.task, &theirs.task));
	lists_show_own(p, other, &own);
	play_want_silence(p, relay, 50);
	(void)close(relay);
	(void)close(own_relay);
}

static void
test_tokens(void **state)
{
	struct play *p = *state;
	struct caller scoped = play_token(p, "acme", "python", 11),
		      wide = play_token(p, "acme", "", 12);

	/* A token for a template that is not there would be of no use; an alias is its template. */
	ASK(p, TOKEN_CREATE, token_create,
		{.caller = wide,
			.prefix = view_str("dml_19"),
			.token = {19},
			.template = view_str("nowhere")});
	play_refused(p, ERROR_BAD_REQUEST);
	ASK(p, TOKEN_CREATE, token_create,
		{.caller = wide,
			.prefix = view_str("dml_18"),
			.token = {18},
			.template = view_str("code-interpreter")});
	ANSWER(p, TOKEN_ROW, token_row, aliased);
	assert_true(view_is(aliased.template, "python"));
	/* Nobody makes a token that may more than his own. */
	ASK(p, TOKEN_CREATE, token_create,
		{.caller = scoped,
			.prefix = view_str("dml_20"),
			.token = {20},
			.template = view_str("node")});
	play_refused(p, ERROR_FORBIDDEN);
	ASK(p, TOKEN_CREATE, token_create,
		{.caller = scoped, .prefix = view_str("dml_21"), .token = {21}});
	ANSWER(p, TOKEN_ROW, token_row, inherits);
	assert_true(view_is(inherits.template, "python"));
	ASK(p, TOKEN_CREATE, token_create,
		{.caller = wide,
			.tenant = view_str("other"),
			.prefix = view_str("dml_22"),
			.token = {22}});
	play_refused(p, ERROR_FORBIDDEN);
	ASK(p, TOKEN_CREATE, token_create,
		{.caller = wide,
			.prefix = view_str("dml_23"),
			.token = {23},
			.expires_ms = clock_real_ms() + 700});
	ANSWER(p, TOKEN_ROW, token_row, brief);
	struct caller expiring = {.kind = CALLER_KIND_TOKEN, .token = {23}};
	ASK(p, TOKEN_CREATE, token_create,
		{.caller = expiring, .prefix = view_str("dml_24"), .token = {24}});
	ANSWER(p, TOKEN_ROW, token_row, child);
	assert_int_equal(child.expires_ms, brief.expires_ms);
	play_want_silence(p, p->api, 800);
	ASK(p, WHOAMI, whoami, {.caller = expiring});
	play_refused(p, ERROR_UNAUTHORIZED);
	/* Same prefix, same digest, none, one of the past. */
	ASK(p, TOKEN_CREATE, token_create,
		{.caller = wide, .prefix = view_str("dml_21"), .token = {31}});
	play_refused(p, ERROR_CONFLICT);
	ASK(p, TOKEN_CREATE, token_create,
		{.caller = wide, .prefix = view_str("dml_32"), .token = {21}});
	play_refused(p, ERROR_CONFLICT);
	ASK(p, TOKEN_CREATE, token_create, {.caller = wide, .prefix = view_str("dml_33")});
	play_refused(p, ERROR_BAD_REQUEST);
	ASK(p, TOKEN_CREATE, token_create,
		{.caller = wide, .prefix = view_str("a/b/c"), .token = {34}});
	play_refused(p, ERROR_BAD_REQUEST);
	ASK(p, TOKEN_CREATE, token_create,
		{.caller = wide, .prefix = view_str("dml_35"), .token = {35}, .expires_ms = 1});
	play_refused(p, ERROR_BAD_REQUEST);
	ASK(p, TOKEN_CREATE, token_create,
		{.caller = wide,
			.prefix = view_str("dml_35"),
			.token = {35},
			.expires_ms = UINT64_MAX});
	play_refused(p, ERROR_BAD_REQUEST);
	ASK(p, TOKEN_CREATE, token_create,
		{.caller = as_root,
			.tenant = view_str("Not A Name"),
			.prefix = view_str("dml_36"),
			.token = {36}});
	play_refused(p, ERROR_BAD_REQUEST);
	ASK(p, TOKEN_REVOKE, token_revoke, {.caller = as_root, .prefix = view_str("' OR 1")});
	play_refused(p, ERROR_NOT_FOUND);
}

static void
test_create(void **state)
{
	struct play *p = *state;

	ASK(p, SANDBOX_CREATE, sandbox_create,
		{.caller = as_root, .template = view_str("nothing")});
	play_refused(p, ERROR_BAD_REQUEST);
	ASK(p, SANDBOX_CREATE, sandbox_create,
		{.caller = as_root, .template = view_str("../python")});
	play_refused(p, ERROR_BAD_REQUEST);
	ASK(p, SANDBOX_CREATE, sandbox_create,
		{.caller = as_root, .tenant = view_str("-a"), .template = view_str("python")});
	play_refused(p, ERROR_BAD_REQUEST);
	CREATE(.task = {{1}});
	play_refused(p, ERROR_NOT_FOUND);
	CREATE(.ttl_ms = 999);
	play_refused(p, ERROR_BAD_REQUEST);
	CREATE(.ttl_ms = 86400001);
	play_refused(p, ERROR_BAD_REQUEST);
	CREATE(.ttl_ms = UINT64_MAX);
	play_refused(p, ERROR_BAD_REQUEST);
	CREATE(.idle_ms = 5);
	play_refused(p, ERROR_BAD_REQUEST);
	CREATE(.limits = {.memory_bytes = UINT64_MAX});
	play_refused(p, ERROR_BAD_REQUEST);
	CREATE(.limits = {.memory_bytes = 4096});
	play_refused(p, ERROR_BAD_REQUEST);
	CREATE(.metadata = view_of("a", 1));
	play_refused(p, ERROR_BAD_REQUEST);
	CREATE(.metadata = view_of("a\0b\0a\0c\0", 8));
	play_refused(p, ERROR_BAD_REQUEST);
	/* A noncharacter is in no record. */
	CREATE(.metadata = view_of("a\0\xef\xbf\xbf\0", 6));
	play_refused(p, ERROR_BAD_REQUEST);
	ASK(p, TASK_CREATE, task_create,
		{.caller = as_root,
			.template = view_str("python"),
			.labels = view_of("a\0\xef\xbf\xbf\0", 6)});
	play_refused(p, ERROR_BAD_REQUEST);
	ASK(p, TOKEN_CREATE, token_create,
		{.caller = as_root,
			.prefix = view_str("dml_40"),
			.token = {40},
			.label = view_str("\xef\xbf\xbf")});
	play_refused(p, ERROR_BAD_REQUEST);
	play_want_silence(p, p->supervisor, 50);
	/* A name that the index does not have, until it has it. */
	ASK(p, TEMPLATE_GET, template_get, {.caller = as_root, .name = view_str("later")});
	play_refused(p, ERROR_NOT_FOUND);
}

static void
test_template_scope(void **state)
{
	struct play *p = *state;
	struct caller scoped;

	play_template(p, "node");
	scoped = play_token(p, "acme", "node", 13);
	WANT(p, p->supervisor, TEMPLATE_PREPARE, template_prepare, prepare);
	ASK(p, SANDBOX_CREATE, sandbox_create, {.caller = scoped, .template = view_str("python")});
	play_refused(p, ERROR_FORBIDDEN);
	ASK(p, TASK_CREATE, task_create, {.caller = scoped, .template = view_str("python")});
	play_refused(p, ERROR_FORBIDDEN);
	ASK(p, TEMPLATE_GET, template_get, {.caller = scoped, .name = view_str("python")});
	play_refused(p, ERROR_NOT_FOUND);
	ASK(p, TEMPLATE_LIST, template_list, {.caller = scoped});
	ANSWER(p, TEMPLATE_ROW, template_row, node);
	assert_true(view_is(node.name, "node"));
	ANSWER(p, END, end, end);
}

static void
restart_with(struct play *p)
{
	play_kill(p);
	play_start(p);
}

static void
test_quota(void **state)
{
	struct play *p = *state;
	struct id id;
	int relays[3];

	p->settings.tenant_max_sandboxes = 2;
	p->settings.max_sandboxes = 3;
	p->settings.tenant_max_tasks = 1;
	restart_with(p);
	relays[0] = play_create(p, &id, NULL);
	relays[1] = play_create(p, &id, NULL);
	CREATE();
	play_refused(p, ERROR_QUOTA);
	ASK(p, SANDBOX_CREATE, sandbox_create,
		{.caller = as_root, .tenant = view_str("b"), .template = view_str("python")});
	relays[2] = play_spawn(p, &id);
	ANSWER(p, SANDBOX_ROW, sandbox_row, third);
	ASK(p, SANDBOX_CREATE, sandbox_create,
		{.caller = as_root, .tenant = view_str("c"), .template = view_str("python")});
	play_refused(p, ERROR_QUOTA);
	/* One less, and there is room again. */
	ASK(p, SANDBOX_KILL, sandbox_kill, {.caller = as_root, .sandbox = id});
	WANT(p, p->supervisor, KILL, kill, kill);
	play_gone(p, &id, SANDBOX_REASON_KILLED);
	ANSWER(p, SANDBOX_ROW, sandbox_row, gone);
	ASK(p, SANDBOX_CREATE, sandbox_create,
		{.caller = as_root, .tenant = view_str("c"), .template = view_str("python")});
	(void)close(relays[2]);
	relays[2] = play_spawn(p, &id);
	ANSWER(p, SANDBOX_ROW, sandbox_row, room);
	ASK(p, TASK_CREATE, task_create,
		{.caller = as_root, .tenant = view_str("d"), .template = view_str("python")});
	ANSWER(p, TASK_ROW, task_row, task);
	ASK(p, TASK_CREATE, task_create,
		{.caller = as_root, .tenant = view_str("d"), .template = view_str("python")});
	play_refused(p, ERROR_QUOTA);
	for (size_t i = 0; i < 3; i++)
		(void)close(relays[i]);
}

static void
test_rate(void **state)
{
	struct play *p = *state;
	struct id id;

	p->settings.tenant_creates_per_minute = 2;
	restart_with(p);
	int relays[] = {play_create(p, &id, NULL), play_create(p, &id, NULL)};
	CREATE();
	ANSWER(p, REFUSED, refused, m);
	assert_int_equal(m.error, ERROR_RATE);
	assert_int_equal(m.retry_after_ms, 1000);
	(void)close(relays[0]);
	(void)close(relays[1]);
}

static void
test_jobs(void **state)
{
	struct play *p = *state;
	struct id sandbox;
	int relay = play_create(p, &sandbox, NULL);

#define RUN_REFUSED(error, ...)                                                         \
	ASK(p, JOB_RUN, job_run, {.caller = as_root, .sandbox = sandbox, __VA_ARGS__}); \
	play_refused(p, error)
#define ARGV .argv = view_of("true", 5)
	RUN_REFUSED(ERROR_BAD_REQUEST, .uid = 10001);
	RUN_REFUSED(ERROR_BAD_REQUEST, .uid = 1, ARGV);
	RUN_REFUSED(ERROR_BAD_REQUEST, .uid = 10001, .argv = view_of("true", 4));
	RUN_REFUSED(ERROR_BAD_REQUEST, .uid = 10001, .argv = view_of("\0x\0", 3));
	RUN_REFUSED(ERROR_BAD_REQUEST, .uid = 10001, .shell = true, .argv = view_of("a\0b\0", 4));
	RUN_REFUSED(ERROR_BAD_REQUEST, .uid = 10001, ARGV, .env = view_of("A=1", 3));
	RUN_REFUSED(ERROR_BAD_REQUEST, .uid = 10001, ARGV, .path = view_str("relative"));
	RUN_REFUSED(ERROR_BAD_REQUEST, .uid = 10001, ARGV, .timeout_ms = UINT64_MAX);
	RUN_REFUSED(ERROR_BAD_REQUEST, .uid = 10001, ARGV, .keep_bytes = UINT64_MAX);
	RUN_REFUSED(ERROR_BAD_REQUEST, .uid = 10001, ARGV, .keep_bytes = (4 << 20) + 1);
	RUN_REFUSED(ERROR_BAD_REQUEST, .uid = 10001, ARGV, .mode = 010000);
	RUN_REFUSED(ERROR_BAD_REQUEST, .uid = 10001, .kind = JOB_KIND_FILE_READ);
	RUN_REFUSED(
		ERROR_BAD_REQUEST, .uid = 10001, .kind = JOB_KIND_FILE_READ, .path = view_str("a"));
	RUN_REFUSED(ERROR_BAD_REQUEST, .uid = 10001, .kind = JOB_KIND_FILE_READ,
		.path = view_str("/a"), ARGV);
	play_want_silence(p, relay, 50);
	ASK(p, JOB_GET, job_get, {.caller = as_root, .sandbox = sandbox, .job = {{1}}});
	play_refused(p, ERROR_NOT_FOUND);
	ASK(p, JOB_KILL, job_kill, {.caller = as_root, .sandbox = sandbox, .job = {{1}}});
	play_refused(p, ERROR_NOT_FOUND);
	struct id job;
	play_run(p, relay, &sandbox, &job);
	uint64_t run_tag = p->tag;
	ASK(p, JOB_KILL, job_kill,
		{.caller = as_root, .sandbox = sandbox, .job = job, .signal = 65});
	play_refused(p, ERROR_BAD_REQUEST);
	play_end_job(p, relay, &job, 0);
	WANT(p, p->api, JOB_ROW, job_row, row);
	assert_int_equal(p->in.tag, run_tag);
	assert_int_equal(row.reason, JOB_REASON_EXITED);
	ASK(p, JOB_KILL, job_kill, {.caller = as_root, .sandbox = sandbox, .job = job});
	play_refused(p, ERROR_CONFLICT);
	(void)close(relay);
}

/* More than a relay takes is refused with a sentence before it is asked. */
static void
test_many_jobs(void **state)
{
	struct play *p = *state;
	struct id sandbox, job;
	int relay = play_create(p, &sandbox, NULL);

	for (int i = 0; i < 64; i++)
		play_run(p, relay, &sandbox, &job);
	RUN_REFUSED(ERROR_QUOTA, .uid = 10001, ARGV);
	play_want_silence(p, relay, 50);
	play_end_job(p, relay, &job, 0);
	WANT(p, p->api, JOB_ROW, job_row, row);
	WANT(p, relay, JOB_RECORDED, job_recorded, recorded);
	play_run(p, relay, &sandbox, &job);
	(void)close(relay);
}

static void
test_lives(void **state)
{
	struct play *p = *state;
	struct id sandbox;
	int relay = play_create(p, &sandbox, NULL);

#define LIFE_REFUSED(...)                                                                         \
	ASK(p, SANDBOX_LIFE, sandbox_life, {.caller = as_root, .sandbox = sandbox, __VA_ARGS__}); \
	play_refused(p, ERROR_BAD_REQUEST)
	LIFE_REFUSED(.set = 0);
	LIFE_REFUSED(.set = 8);
	LIFE_REFUSED(.set = 255);
	LIFE_REFUSED(.set = 1, .ttl_ms = 0);
	LIFE_REFUSED(.set = 1, .ttl_ms = UINT64_MAX);
	LIFE_REFUSED(.set = 2, .idle_ms = 1);
	LIFE_REFUSED(.set = 2, .idle_ms = UINT64_MAX);
	play_want_silence(p, p->supervisor, 50);
	/* What ended can be looked at, and nothing else. */
	SAY(p->supervisor, GONE, gone, {.sandbox = sandbox, .reason = SANDBOX_REASON_AGENT_LOST});
	play_want_closed(p, relay);
#define ENDED(NAME, name, ...)                                                    \
	ASK(p, NAME, name, {.caller = as_root, .sandbox = sandbox, __VA_ARGS__}); \
	play_refused(p, ERROR_SANDBOX_ENDED)
	ENDED(JOB_RUN, job_run, .uid = 10001, ARGV);
	ENDED(SANDBOX_FREEZE, sandbox_freeze);
	ENDED(SANDBOX_LIFE, sandbox_life, .set = 4);
	ENDED(SANDBOX_USAGE, sandbox_usage);
	ENDED(JOB_KILL, job_kill);
	ASK(p, SANDBOX_GET, sandbox_get, {.caller = as_root, .sandbox = sandbox});
	ANSWER(p, SANDBOX_ROW, sandbox_row, row);
	assert_int_equal(row.reason, SANDBOX_REASON_AGENT_LOST);
	ASK(p, SANDBOX_GET, sandbox_get, {.caller = as_root, .sandbox = {{1}}});
	play_refused(p, ERROR_NOT_FOUND);
	(void)close(relay);
}

static void
test_inputs(void **state)
{
	struct play *p = *state;

	ASK(p, TASK_CREATE, task_create, {.caller = as_root, .template = view_str("python")});
	ANSWER(p, TASK_ROW, task_row, task);
#define INPUT_REFUSED(error, ...)                                                            \
	ASK(p, INPUT_OPEN, input_open, {.caller = as_root, .task = task.task, __VA_ARGS__}); \
	play_refused(p, error)
	INPUT_REFUSED(ERROR_BAD_REQUEST, .path = view_str(""));
	INPUT_REFUSED(ERROR_BAD_REQUEST, .path = view_str("a"));
	INPUT_REFUSED(ERROR_BAD_REQUEST, .path = view_str("/a/"));
	INPUT_REFUSED(ERROR_BAD_REQUEST, .path = view_str("/workspace/a"), .mode = 04755);
	INPUT_REFUSED(
		ERROR_TOO_LARGE, .path = view_str("/workspace/a"), .size_bytes = (1 << 20) + 1);
	INPUT_REFUSED(ERROR_TOO_LARGE, .path = view_str("/workspace/a"), .size_bytes = UINT64_MAX);
	/* Room that another upload has taken already. */
	ASK(p, INPUT_OPEN, input_open,
		{.caller = as_root,
			.task = task.task,
			.path = view_str("/workspace/a"),
			.size_bytes = 1 << 19});
	ANSWER(p, INPUT_FILE, input_file, first);
	uint64_t first_tag = p->tag;
	INPUT_REFUSED(
		ERROR_TOO_LARGE, .path = view_str("/workspace/b"), .size_bytes = (1 << 19) + 1);
	/* Not what was announced; given up; a tag that nobody opened. */
	SAY_TAG(p->api, first_tag, INPUT_CLOSE, input_close, -1, {.complete = true});
	WANT(p, p->api, REFUSED, refused, m);
	assert_int_equal(m.error, ERROR_BAD_REQUEST);
	ASK(p, INPUT_OPEN, input_open,
		{.caller = as_root,
			.task = task.task,
			.path = view_str("/workspace/a"),
			.size_bytes = 3});
	ANSWER(p, INPUT_FILE, input_file, second);
	SAY_TAG(p->api, p->tag, INPUT_CLOSE, input_close, -1, {.complete = false});
	play_refused(p, ERROR_BAD_REQUEST);
	ASK(p, INPUT_CLOSE, input_close, {.complete = true});
	play_refused(p, ERROR_BAD_REQUEST);
	ASK(p, INPUT_LIST, input_list, {.caller = as_root, .task = task.task});
	ANSWER(p, END, end, none);
}

/* A supervisor that does not answer: the request ends, the sandbox is ended. */
static void
test_deadline(void **state)
{
	struct play *p = *state;

	CREATE();
	WANT(p, p->supervisor, SPAWN, spawn, spawn);
	WANT(p, p->supervisor, KILL, kill, kill);
	assert_true(id_eq(&spawn.sandbox, &kill.sandbox));
	/* SPAWNED that comes too late changes nothing. */
	struct facts f = play_facts(p, &spawn.limits);
	int relay = play_spawned(p, &spawn.sandbox, &f);
	play_want_closed(p, relay);
	play_gone(p, &spawn.sandbox, SANDBOX_REASON_KILLED);
	play_refused(p, ERROR_SPAWN);
	(void)close(relay);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(callers),
		TEST(every_request),
		TEST(isolation),
		TEST(tokens),
		TEST(create),
		TEST(template_scope),
		TEST(quota),
		TEST(rate),
		TEST(jobs),
		TEST(many_jobs),
		TEST(lives),
		TEST(inputs),
		TEST(deadline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
