/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in itself: starts demilune-api as the supervisor would (own uid, three capabilities, fixed descriptors) and
 * answers its questions. Usage: fake-engine API SOCKET-PATH ADDRESS:PORT. Ends when the api ends, with its status.
 */
#include "fake_actions.h"

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { API_UID = 64902, FAT = 0xfa };

void
fake_refused(struct ipc_peer *peer, uint64_t tag, enum error error, const char *text)
{
	IPC_SEND(peer, tag, REFUSED, refused,
		{.error = (uint16_t)error,
			.text = view_str(text),
			.retry_after_ms = error == ERROR_RATE ? 1500 : 0});
}

static struct fake_token *
token_find(struct fake *f, const uint8_t *digest)
{
	for (size_t i = 0; i < FAKE_TOKENS; i++)
		if (f->tokens[i].used && !f->tokens[i].revoked &&
			memcmp(f->tokens[i].digest, digest, 32) == 0)
			return &f->tokens[i];
	return NULL;
}

/* False when the caller was refused. */
bool
fake_known(struct ipc_peer *peer, uint64_t tag, const struct caller *c)
{
	struct fake *f = peer->owner;

	if (c->kind == CALLER_KIND_LOCAL && c->local < LOCAL_BOUND &&
		f->locals[c->local] == f->admin_uid + 1)
		return true;
	if (c->kind == CALLER_KIND_TOKEN && token_find(f, c->token) != NULL)
		return true;
	fake_refused(peer, tag, ERROR_UNAUTHORIZED, "the token is unknown, expired or revoked");
	return false;
}

bool
fake_other_tenant(struct ipc_peer *peer, const struct caller *c)
{
	const struct fake_token *t = c->kind == CALLER_KIND_TOKEN
					     ? token_find(peer->owner, c->token)
					     : NULL;

	return t != NULL && strcmp(t->label, "other") == 0;
}

static struct fake_sandbox *
sandbox_find(struct ipc_peer *peer, uint64_t tag, const struct id *id)
{
	struct fake *f = peer->owner;

	for (size_t i = 0; i < FAKE_SANDBOXES; i++)
		if (f->sandboxes[i].used && id_eq(&f->sandboxes[i].id, id))
			return &f->sandboxes[i];
	fake_refused(peer, tag, ERROR_NOT_FOUND, "no such sandbox");
	return NULL;
}

static void
sandbox_row(struct ipc_peer *peer, uint64_t tag, const struct fake_sandbox *s, bool replayed)
{
	IPC_SEND(peer, tag, SANDBOX_ROW, sandbox_row,
		{.sandbox = s->id,
			.task = s->task,
			.tenant = view_str("acme"),
			.template_asked = view_str(s->template),
			.template = view_str("python"),
			.state = s->gone     ? SANDBOX_STATE_GONE
				 : s->paused ? SANDBOX_STATE_PAUSED
					     : SANDBOX_STATE_RUNNING,
			.reason = s->gone ? SANDBOX_REASON_KILLED : SANDBOX_REASON_NONE,
			.limits = {.memory_bytes = 512 << 20, .cpu_milli = 500, .pids = 128},
			.created_ms = s->created_ms,
			.ttl_ms = s->ttl_ms,
			.ttl_left_ms = s->ttl_ms,
			.idle_ms = s->idle_ms,
			.persistent = s->persistent,
			.boot_us = 4100,
			.replayed = replayed,
			.policy = view_str(s->policy),
			.policy_digest = {s->policy[0] == 0 ? 0 : 0xcc},
			.metadata = buf_view(&s->metadata)});
}

#define HANDLER(name)                                                   \
	static int on_##name(struct ipc_peer *peer, struct ipc_msg *in, \
		const struct msg_##name *m, struct err *err);           \
	IPC_HANDLER(name, on_##name)                                    \
	static int on_##name(struct ipc_peer *peer, struct ipc_msg *in, \
		const struct msg_##name *m, struct err *err)

HANDLER(local_open)
{
	struct fake *f = peer->owner;
	struct ucred cred;
	socklen_t n = sizeof(cred);

	if (m->local >= LOCAL_BOUND || f->locals[m->local] != 0)
		return err_set(err, -EPROTO, "the number of a local caller is taken");
	must(getsockopt(in->fds[0], SOL_SOCKET, SO_PEERCRED, &cred, &n) == 0);
	f->locals[m->local] = cred.uid + 1;
	return 0;
}

HANDLER(local_close)
{
	struct fake *f = peer->owner;

	(void)in;
	if (m->local >= LOCAL_BOUND || f->locals[m->local] == 0)
		return err_set(err, -EPROTO, "no such local caller");
	f->locals[m->local] = 0;
	return 0;
}

HANDLER(whoami)
{
	(void)err;
	if (fake_known(peer, in->tag, &m->caller))
		IPC_SEND(peer, in->tag, PRINCIPAL, principal,
			{.name = view_str("tester"),
				.tenant = view_str("acme"),
				.admin = m->caller.kind == CALLER_KIND_LOCAL});
	return 0;
}

HANDLER(token_create)
{
	struct fake *f = peer->owner;
	size_t i = 0;

	(void)err;
	if (!fake_known(peer, in->tag, &m->caller))
		return 0;
	while (i < FAKE_TOKENS && f->tokens[i].used)
		i++;
	must(i < FAKE_TOKENS);
	f->tokens[i] = (struct fake_token){.used = true, .expires_ms = m->expires_ms};
	memcpy(f->tokens[i].digest, m->token, 32);
	(void)snprintf(f->tokens[i].prefix, 13, "%.*s", VIEW_ARGS(m->prefix));
	(void)snprintf(f->tokens[i].label, 129, "%.*s", VIEW_ARGS(m->label));
	IPC_SEND(peer, in->tag, TOKEN_ROW, token_row,
		{.prefix = m->prefix,
			.label = m->label,
			.tenant = view_str("acme"),
			.created_ms = clock_real_ms(),
			.expires_ms = m->expires_ms});
	return 0;
}

HANDLER(token_list)
{
	struct fake *f = peer->owner;

	(void)err;
	if (!fake_known(peer, in->tag, &m->caller))
		return 0;
	for (size_t i = 0; i < FAKE_TOKENS; i++)
		if (f->tokens[i].used)
			IPC_SEND(peer, in->tag, TOKEN_ROW, token_row,
				{.prefix = view_str(f->tokens[i].prefix),
					.label = view_str(f->tokens[i].label),
					.tenant = view_str("acme"),
					.created_ms = 1700000000000});
	IPC_SEND(peer, in->tag, END, end, {0});
	return 0;
}

HANDLER(token_revoke)
{
	struct fake *f = peer->owner;

	(void)err;
	if (!fake_known(peer, in->tag, &m->caller))
		return 0;
	for (size_t i = 0; i < FAKE_TOKENS; i++)
		if (f->tokens[i].used && view_is(m->prefix, f->tokens[i].prefix)) {
			f->tokens[i].revoked = true;
			IPC_SEND(peer, in->tag, DONE, done, {0});
			return 0;
		}
	fake_refused(peer, in->tag, ERROR_NOT_FOUND, "no such token");
	return 0;
}

/* The same key again: 1 answered, 0 not seen. */
static int
replay(struct ipc_peer *peer, uint64_t tag, const struct msg_sandbox_create *m)
{
	static const uint8_t none[32];
	struct fake *f = peer->owner;

	if (memcmp(m->idempotency_key, none, 32) == 0)
		return 0;
	for (size_t i = 0; i < FAKE_SANDBOXES; i++) {
		struct fake_sandbox *s = &f->sandboxes[i];

		if (!s->used || memcmp(s->key, m->idempotency_key, 32) != 0)
			continue;
		if (memcmp(s->key_body, m->idempotency_body, 32) != 0)
			fake_refused(peer, tag, ERROR_IDEMPOTENCY,
				"this Idempotency-Key came with another request");
		else
			sandbox_row(peer, tag, s, true);
		return 1;
	}
	return 0;
}

HANDLER(sandbox_create)
{
	struct fake *f = peer->owner;
	struct fake_sandbox *s = NULL;

	(void)err;
	if (!fake_known(peer, in->tag, &m->caller) || replay(peer, in->tag, m) != 0)
		return 0;
	if (view_is(m->template, "nowhere")) {
		fake_refused(
			peer, in->tag, ERROR_BAD_REQUEST, "nowhere is not in the template catalog");
		return 0;
	}
	if (view_is(m->template, "forbidden")) {
		fake_refused(peer, in->tag, ERROR_FORBIDDEN,
			"this token may not use the template forbidden");
		return 0;
	}
	if (view_is(m->template, "rate")) {
		fake_refused(peer, in->tag, ERROR_RATE, "too many creations in this minute");
		return 0;
	}
	if (view_is(m->template, "silent"))
		return 0;
	if (m->policy.n > 0 && !view_is(m->policy, "support")) {
		fake_refused(peer, in->tag, ERROR_NOT_FOUND, "no such policy");
		return 0;
	}
	for (size_t i = 0; i < FAKE_SANDBOXES && s == NULL; i++)
		if (!f->sandboxes[i].used || f->sandboxes[i].gone)
			s = &f->sandboxes[i];
	must(s != NULL);
	buf_done(&s->metadata);
	*s = (struct fake_sandbox){.used = true,
		.created_ms = clock_real_ms(),
		.persistent = m->persistent,
		.ttl_ms = m->ttl_ms == 0 ? 3600000 : m->ttl_ms,
		.idle_ms = m->idle_ms};
	f->ncreated++;
	id_new(&s->id);
	s->task = m->task;
	if (id_is_zero(&s->task))
		id_new(&s->task);
	(void)snprintf(s->template, sizeof(s->template), "%.*s", VIEW_ARGS(m->template));
	(void)snprintf(s->policy, sizeof(s->policy), "%.*s", VIEW_ARGS(m->policy));
	memcpy(s->key, m->idempotency_key, 32);
	memcpy(s->key_body, m->idempotency_body, 32);
	buf_init(&s->metadata, 16384);
	buf_add_view(&s->metadata, m->metadata);
	sandbox_row(peer, in->tag, s, false);
	return 0;
}

HANDLER(sandbox_list)
{
	struct fake *f = peer->owner;
	size_t from = 0, sent = 0, i;

	(void)err;
	if (!fake_known(peer, in->tag, &m->caller))
		return 0;
	for (i = 0; i < FAKE_SANDBOXES; i++)
		if (!id_is_zero(&m->after) && id_eq(&f->sandboxes[i].id, &m->after))
			from = i + 1;
	for (i = from; i < FAKE_SANDBOXES && sent < m->limit; i++)
		if (f->sandboxes[i].used && !f->sandboxes[i].gone) {
			sandbox_row(peer, in->tag, &f->sandboxes[i], false);
			sent++;
		}
	IPC_SEND(peer, in->tag, END, end, {.more = i < FAKE_SANDBOXES && f->sandboxes[i].used});
	return 0;
}

HANDLER(sandbox_get)
{
	struct fake_sandbox *s;

	(void)err;
	if (fake_known(peer, in->tag, &m->caller) &&
		(s = sandbox_find(peer, in->tag, &m->sandbox)) != NULL)
		sandbox_row(peer, in->tag, s, false);
	return 0;
}

HANDLER(sandbox_kill)
{
	struct fake_sandbox *s;

	(void)err;
	if (fake_known(peer, in->tag, &m->caller) &&
		(s = sandbox_find(peer, in->tag, &m->sandbox)) != NULL) {
		s->gone = true;
		sandbox_row(peer, in->tag, s, false);
	}
	return 0;
}

HANDLER(sandbox_freeze)
{
	struct fake_sandbox *s;

	(void)err;
	if (fake_known(peer, in->tag, &m->caller) &&
		(s = sandbox_find(peer, in->tag, &m->sandbox)) != NULL) {
		s->paused = m->frozen;
		sandbox_row(peer, in->tag, s, false);
	}
	return 0;
}

HANDLER(sandbox_life)
{
	struct fake_sandbox *s;

	(void)err;
	if (!fake_known(peer, in->tag, &m->caller) ||
		(s = sandbox_find(peer, in->tag, &m->sandbox)) == NULL)
		return 0;
	if ((m->set & 1) != 0)
		s->ttl_ms = m->ttl_ms;
	if ((m->set & 2) != 0)
		s->idle_ms = m->idle_ms;
	if ((m->set & 4) != 0)
		s->persistent = m->persistent;
	sandbox_row(peer, in->tag, s, false);
	return 0;
}

HANDLER(sandbox_usage)
{
	(void)err;
	if (fake_known(peer, in->tag, &m->caller) &&
		sandbox_find(peer, in->tag, &m->sandbox) != NULL)
		IPC_SEND(peer, in->tag, USAGE_ROW, usage_row,
			{.usage = {.memory_bytes = 1 << 20, .cpu_us = 5000, .pids = 2},
				.uptime_ms = 1000,
				.host_pid = 4242});
	return 0;
}

HANDLER(job_run)
{
	struct fake_sandbox *s;

	(void)err;
	if (!fake_known(peer, in->tag, &m->caller) ||
		(s = sandbox_find(peer, in->tag, &m->sandbox)) == NULL)
		return 0;
	if (s->gone)
		fake_refused(peer, in->tag, ERROR_SANDBOX_ENDED, "the sandbox ended");
	else if (s->paused)
		fake_refused(peer, in->tag, ERROR_CONFLICT, "sandbox not running (paused)");
	else
		fake_job_start(fake_job_new(peer->owner, in->tag, m), m->argv);
	return 0;
}

static struct fake_job *
job_find(struct ipc_peer *peer, uint64_t tag, const struct id *id)
{
	struct fake *f = peer->owner;

	for (size_t i = 0; i < f->njobs; i++)
		if (id_eq(&f->jobs[i]->id, id))
			return f->jobs[i];
	fake_refused(peer, tag, ERROR_NOT_FOUND, "no such job");
	return NULL;
}

HANDLER(job_attach)
{
	struct fake_job *j = fake_known(peer, in->tag, &m->caller)
				     ? job_find(peer, in->tag, &m->job)
				     : NULL;

	(void)err;
	if (j != NULL)
		fake_job_attach(j, in->tag, m->stdout_from, m->stderr_from);
	return 0;
}

HANDLER(job_get)
{
	struct fake_job *j = fake_known(peer, in->tag, &m->caller)
				     ? job_find(peer, in->tag, &m->job)
				     : NULL;

	(void)err;
	if (j != NULL)
		fake_job_row(j, in->tag);
	return 0;
}

HANDLER(job_list)
{
	struct fake *f = peer->owner;
	size_t from = 0, sent = 0;
	bool more = false;

	(void)err;
	if (!fake_known(peer, in->tag, &m->caller) ||
		sandbox_find(peer, in->tag, &m->sandbox) == NULL)
		return 0;
	for (size_t i = 0; i < f->njobs; i++)
		if (!id_is_zero(&m->after) && id_eq(&f->jobs[i]->id, &m->after))
			from = i + 1;
	for (size_t i = from; i < f->njobs; i++) {
		if (!id_eq(&f->jobs[i]->sandbox, &m->sandbox))
			continue;
		if (sent++ == m->limit) {
			more = true;
			break;
		}
		fake_job_row(f->jobs[i], in->tag);
	}
	IPC_SEND(peer, in->tag, END, end, {.more = more});
	return 0;
}

HANDLER(job_kill)
{
	struct fake_job *j = m->revoked || fake_known(peer, in->tag, &m->caller)
				     ? job_find(peer, in->tag, &m->job)
				     : NULL;

	(void)err;
	if (j == NULL)
		return 0;
	must(!m->revoked || token_find(peer->owner, m->caller.token) == NULL);
	IPC_SEND(peer, in->tag, DONE, done, {0});
	if (j->child > 0) {
		(void)kill(-j->child, m->signal == 0 ? SIGKILL : (int)m->signal);
		return 0;
	}
	fake_job_end(
		j, m->signal == 0 ? JOB_REASON_CANCELLED : JOB_REASON_SIGNALLED, (int)m->signal);
	return 0;
}

/* As the real engine: one cell at a time, in a job that runs. The text or the exit code asks for a refusal. */
HANDLER(cell_begin)
{
	struct fake_job *j = fake_known(peer, in->tag, &m->caller)
				     ? job_find(peer, in->tag, &m->job)
				     : NULL;

	(void)err;
	if (j == NULL)
		return 0;
	must(!j->cell_open && j->reason == JOB_REASON_RUNNING && id_eq(&j->sandbox, &m->sandbox));
	if (view_starts(m->code, "# refuse")) {
		fake_refused(peer, in->tag, ERROR_UNAVAILABLE, "it cannot be recorded");
		return 0;
	}
	j->cell_open = true;
	IPC_SEND(peer, in->tag, DONE, done, {0});
	return 0;
}

HANDLER(cell_end)
{
	struct fake_job *j = fake_known(peer, in->tag, &m->caller)
				     ? job_find(peer, in->tag, &m->job)
				     : NULL;

	(void)err;
	if (j == NULL)
		return 0;
	must(j->cell_open);
	if (m->code == 77) {
		fake_refused(peer, in->tag, ERROR_UNAVAILABLE, "its end cannot be recorded");
		return 0;
	}
	j->cell_open = false;
	IPC_SEND(peer, in->tag, DONE, done, {0});
	return 0;
}

static void
task_row(struct ipc_peer *peer, uint64_t tag, const struct id *id, bool closed, struct view policy)
{
	static const char labels[] = "ticket\00048221";

	IPC_SEND(peer, tag, TASK_ROW, task_row,
		{.task = *id,
			.tenant = view_str("acme"),
			.template = view_str("python"),
			.created_ms = 1700000000000,
			.state = closed ? TASK_STATE_CLOSED : TASK_STATE_OPEN,
			.policy = policy,
			.labels = view_of(labels, sizeof(labels))});
}

HANDLER(task_create)
{
	struct id id;

	(void)err;
	id_new(&id);
	if (fake_known(peer, in->tag, &m->caller))
		task_row(peer, in->tag, &id, false, m->policy);
	return 0;
}

HANDLER(task_list)
{
	struct id id;

	(void)err;
	if (!fake_known(peer, in->tag, &m->caller))
		return 0;
	id_new(&id);
	task_row(peer, in->tag, &id, false, view_of(NULL, 0));
	IPC_SEND(peer, in->tag, END, end, {0});
	return 0;
}

HANDLER(task_get)
{
	struct id id;

	(void)err;
	id_new(&id);
	if (!fake_known(peer, in->tag, &m->caller))
		return 0;
	if (view_is(m->name, "fat"))
		memset(id.b, FAT, sizeof(id.b));
	if (view_is(m->name, "48221") || view_is(m->name, "fat") || view_starts(m->name, ID_TASK))
		task_row(peer, in->tag, &id, false, view_of(NULL, 0));
	else
		fake_refused(peer, in->tag, ERROR_NOT_FOUND, "no such task");
	return 0;
}

HANDLER(task_close)
{
	(void)err;
	if (fake_known(peer, in->tag, &m->caller))
		task_row(peer, in->tag, &m->task, true, view_of(NULL, 0));
	return 0;
}

HANDLER(task_resume)
{
	struct msg_sandbox_create create = {
		.caller = m->caller, .task = m->task, .template = view_str("python")};

	return on_sandbox_create(peer, in, &create, err);
}

HANDLER(input_open)
{
	struct fake *f = peer->owner;
	size_t i = 0;
	int pair[2];

	(void)err;
	if (!fake_known(peer, in->tag, &m->caller))
		return 0;
	while (i < FAKE_INPUTS && f->inputs[i].used)
		i++;
	must(i < FAKE_INPUTS && pipe2(pair, O_CLOEXEC) == 0);
	(void)close(pair[0]);
	pair[0] = (int)syscall(SYS_memfd_create, "input", 1U);
	f->inputs[i] = (struct fake_input){.used = true, .tag = in->tag, .fd = pair[0]};
	(void)snprintf(f->inputs[i].path, 4097, "%.*s", (int)m->path.n, (const char *)m->path.p);
	IPC_SEND_FD(peer, in->tag, INPUT_FILE, input_file, pair[0], {0});
	(void)close(pair[1]);
	return 0;
}

HANDLER(input_close)
{
	struct fake *f = peer->owner;

	(void)err;
	for (size_t i = 0; i < FAKE_INPUTS; i++) {
		struct fake_input *input = &f->inputs[i];

		if (!input->used || input->tag != in->tag)
			continue;
		input->complete = m->complete;
		input->tag = 0;
		if (!m->complete)
			input->used = false;
		IPC_SEND(peer, in->tag, INPUT_ROW, input_row,
			{.path = view_str(input->path),
				.mode = 0644,
				.size_bytes = (uint64_t)lseek(input->fd, 0, SEEK_END)});
	}
	return 0;
}

HANDLER(input_list)
{
	struct fake *f = peer->owner;

	(void)err;
	if (!fake_known(peer, in->tag, &m->caller))
		return 0;
	for (size_t i = 0; i < FAKE_INPUTS; i++)
		if (f->inputs[i].used && f->inputs[i].complete)
			IPC_SEND(peer, in->tag, INPUT_ROW, input_row,
				{.path = view_str(f->inputs[i].path), .mode = 0644});
	IPC_SEND(peer, in->tag, END, end, {0});
	return 0;
}

HANDLER(input_delete)
{
	struct fake *f = peer->owner;

	(void)err;
	if (!fake_known(peer, in->tag, &m->caller))
		return 0;
	for (size_t i = 0; i < FAKE_INPUTS; i++)
		if (f->inputs[i].used && view_is(m->path, f->inputs[i].path))
			f->inputs[i].used = false;
	IPC_SEND(peer, in->tag, DONE, done, {0});
	return 0;
}

static void
template_row(struct ipc_peer *peer, uint64_t tag)
{
	static const char aliases[] = "code-interpreter\0ubuntu-24.04";

	IPC_SEND(peer, tag, TEMPLATE_ROW, template_row,
		{.name = view_str("python"),
			.size_bytes = 1000,
			.aliases = view_of(aliases, sizeof(aliases)),
			.created_ms = 1700000000000,
			.mounted = true});
}

HANDLER(template_list)
{
	(void)err;
	if (!fake_known(peer, in->tag, &m->caller))
		return 0;
	template_row(peer, in->tag);
	IPC_SEND(peer, in->tag, END, end, {0});
	return 0;
}

HANDLER(template_get)
{
	(void)err;
	if (!fake_known(peer, in->tag, &m->caller))
		return 0;
	if (view_is(m->name, "python"))
		template_row(peer, in->tag);
	else
		fake_refused(peer, in->tag, ERROR_NOT_FOUND, "no such template");
	return 0;
}

HANDLER(audit_read)
{
	struct fake *f = peer->owner;
	uint64_t last = 450, n = m->after;
	char sandbox[ID_TEXT], record[5000];
	struct id task = {{0}};
	bool fat; /* records as long as paths can make them */

	(void)err;
	if (!fake_known(peer, in->tag, &m->caller))
		return 0;
	if (id_parse(m->name, ID_TASK, &task) < 0) {
		fake_refused(peer, in->tag, ERROR_NOT_FOUND,
			"a ticket may change its task between two pages");
		return 0;
	}
	fat = task.b[0] == FAT && task.b[1] == FAT;
	id_text(&f->sandboxes[0].id, ID_SANDBOX, sandbox);
	while (n < last && n < m->after + m->limit) {
		n++;
		(void)snprintf(record, sizeof(record),
			"{\"event\":\"job.end\",\"path\":\"%0*d\",\"sandbox\":\"%s\",\"seq\":%llu,"
			"\"ts_ms\":1700000000123}",
			fat ? 4095 : 1, 0, sandbox, (unsigned long long)n);
		IPC_SEND(peer, in->tag, AUDIT_ROW, audit_row,
			{.number = n, .record = view_str(record)});
	}
	IPC_SEND(peer, in->tag, END, end, {.more = n < last});
	return 0;
}

HANDLER(health)
{
	(void)m, (void)err;
	IPC_SEND(peer, in->tag, HEALTH_ROW, health_row, {.ready = true});
	return 0;
}

static const struct ipc_row own_rows[] = {
	IPC_ROW(LOCAL_OPEN, IN_ANY, on_local_open),
	IPC_ROW(LOCAL_CLOSE, IN_ANY, on_local_close),
	IPC_ROW(WHOAMI, IN_ANY, on_whoami),
	IPC_ROW(TOKEN_CREATE, IN_ANY, on_token_create),
	IPC_ROW(TOKEN_LIST, IN_ANY, on_token_list),
	IPC_ROW(TOKEN_REVOKE, IN_ANY, on_token_revoke),
	IPC_ROW(SANDBOX_CREATE, IN_ANY, on_sandbox_create),
	IPC_ROW(SANDBOX_LIST, IN_ANY, on_sandbox_list),
	IPC_ROW(SANDBOX_GET, IN_ANY, on_sandbox_get),
	IPC_ROW(SANDBOX_KILL, IN_ANY, on_sandbox_kill),
	IPC_ROW(SANDBOX_FREEZE, IN_ANY, on_sandbox_freeze),
	IPC_ROW(SANDBOX_LIFE, IN_ANY, on_sandbox_life),
	IPC_ROW(SANDBOX_USAGE, IN_ANY, on_sandbox_usage),
	IPC_ROW(JOB_RUN, IN_ANY, on_job_run),
	IPC_ROW(JOB_ATTACH, IN_ANY, on_job_attach),
	IPC_ROW(JOB_GET, IN_ANY, on_job_get),
	IPC_ROW(JOB_LIST, IN_ANY, on_job_list),
	IPC_ROW(JOB_KILL, IN_ANY, on_job_kill),
	IPC_ROW(CELL_BEGIN, IN_ANY, on_cell_begin),
	IPC_ROW(CELL_END, IN_ANY, on_cell_end),
	IPC_ROW(TASK_CREATE, IN_ANY, on_task_create),
	IPC_ROW(TASK_LIST, IN_ANY, on_task_list),
	IPC_ROW(TASK_GET, IN_ANY, on_task_get),
	IPC_ROW(TASK_CLOSE, IN_ANY, on_task_close),
	IPC_ROW(TASK_RESUME, IN_ANY, on_task_resume),
	IPC_ROW(INPUT_OPEN, IN_ANY, on_input_open),
	IPC_ROW(INPUT_LIST, IN_ANY, on_input_list),
	IPC_ROW(INPUT_DELETE, IN_ANY, on_input_delete),
	IPC_ROW(TEMPLATE_LIST, IN_ANY, on_template_list),
	IPC_ROW(TEMPLATE_GET, IN_ANY, on_template_get),
	IPC_ROW(AUDIT_READ, IN_ANY, on_audit_read),
	IPC_ROW(HEALTH, IN_ANY, on_health),
	IPC_ROW(INPUT_CLOSE, IN_ANY, on_input_close),
};
static struct ipc_row rows[128];

static void
on_api_lost(struct ipc_peer *peer, const struct err *why)
{
	struct fake *f = peer->owner;

	(void)fprintf(stderr, "fake: the api is gone: %s\n", why->text);
	ipc_peer_close(peer);
	if (f->engine != peer)
		return;
	f->engine = NULL;
	ev_timer_start(f->loop, &f->restart);
}

static int
engine_connect(struct fake *f)
{
	size_t n = ARRAY_LEN(own_rows) + fake_action_rows_n + fake_egress_rows_n;
	struct err err = {0};
	int pair[2];

	must(ipc_pair(pair, &err) == 0);
	must(n <= ARRAY_LEN(rows));
	memcpy(rows, own_rows, sizeof(own_rows));
	memcpy(rows + ARRAY_LEN(own_rows), fake_action_rows, fake_action_rows_n * sizeof(rows[0]));
	memcpy(rows + n - fake_egress_rows_n, fake_egress_rows,
		fake_egress_rows_n * sizeof(rows[0]));
	f->engine = ipc_peer_new(
		f->loop, pair[0], EDGE_API_ENGINE, ROOM_ENGINE, rows, n, f, on_api_lost, &err);
	must(f->engine != NULL);
	memset(f->locals, 0, sizeof(f->locals));
	f->engine->pause_at_bytes = 1 << 20; /* as src/engine/serve.c */
	return pair[1];
}

static void
on_restart(struct ev_loop *loop, ev_timer *w, int events)
{
	struct fake *f = container_of(w, struct fake, restart);
	struct err err = {0};
	struct buf packed, body;
	int fd = engine_connect(f);

	(void)loop, (void)events;
	buf_init(&packed, 256);
	buf_init(&body, 64);
	ipc_pack(&packed, MSG_ENGINE_NEW, 0, buf_view(&body));
	if (ipc_write(f->supervisor, buf_view(&packed), &fd, 1, &err) < 0)
		ev_break(f->loop, EVBREAK_ALL);
	buf_done(&packed);
	(void)close(fd);
}

/* The engine is gone at once and comes back a second later. */
void
fake_crash(struct fake *f)
{
	ipc_peer_close(f->engine);
	f->engine = NULL;
	ev_timer_start(f->loop, &f->restart);
}

/* An answer to a question that nobody asked. */
void
fake_send_rubbish(struct fake *f)
{
	IPC_SEND(f->engine, 1ULL << 60, DONE, done, {0});
}

/* The engine finds the api broken and lives on. */
void
fake_hang_up(struct fake *f)
{
	ipc_peer_close(f->engine);
	f->engine = NULL;
}

static int
local_socket(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	(void)unlink(path);
	must(fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(fd, 512) == 0);
	return fd;
}

/* As a process of the host starts (proto/fds.def). */
static void
become(uid_t uid)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {{0}};
	unsigned caps[] = {CAP_SETUID, CAP_SETGID, CAP_SETPCAP};
	unsigned mask = 0;

	for (size_t i = 0; i < ARRAY_LEN(caps); i++)
		mask |= 1U << caps[i];
	d[0].effective = d[0].permitted = d[0].inheritable = mask;
	must(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 && setresgid(uid, uid, uid) == 0 &&
		setresuid(uid, uid, uid) == 0);
	must(syscall(SYS_capset, &h, d) == 0);
	for (size_t i = 0; i < ARRAY_LEN(caps); i++)
		must(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, caps[i], 0, 0) == 0);
}

static void
api_exec(const char *api, const char *tcp, uid_t uid, const int fds[3])
{
	char *argv[] = {(char *)(uintptr_t)api, (char *)(uintptr_t)tcp, NULL}, *envp[] = {NULL};
	struct err err = {0};

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	must(fd_arrange(fds, 3, 3, &err) == 0);
	if (getuid() == 0)
		become(uid);
	(void)execve(api, argv, envp);
	_exit(126);
}

static void
on_child(struct ev_loop *loop, ev_io *w, int events)
{
	(void)w, (void)events;
	ev_break(loop, EVBREAK_ALL);
}

static void
on_signal(struct ev_loop *loop, ev_signal *w, int events)
{
	(void)events;
	(void)kill(*(pid_t *)w->data, SIGTERM); /* its end ends us */
	(void)loop;
}

int
main(int argc, char **argv)
{
	static struct fake f;
	struct err err = {0};
	int pair[2], fds[3];
	int status = 0;
	ev_io child;
	ev_signal term;
	pid_t pid;

	if (argc != 4)
		return 2;
	f.loop = loop_new();
	f.admin_uid = getuid();
	ev_timer_init(&f.restart, on_restart, 1.0, 0);
	must(ipc_pair(pair, &err) == 0);
	fds[0] = engine_connect(&f);
	fds[1] = local_socket(argv[2]);
	fds[2] = pair[1];
	f.supervisor = pair[0];
	pid = fork();
	if (pid == 0)
		api_exec(argv[1], argv[3], API_UID, fds);
	for (size_t i = 0; i < 3; i++)
		(void)close(fds[i]);
	ev_io_init(&child, on_child, (int)syscall(SYS_pidfd_open, pid, 0), EV_READ);
	ev_io_start(f.loop, &child);
	ev_signal_init(&term, on_signal, SIGTERM);
	term.data = &pid;
	ev_signal_start(f.loop, &term);
	ev_run(f.loop, 0);
	must(waitpid(pid, &status, 0) == pid);
	(void)fprintf(stderr, "fake: the api ended with status 0x%x\n", (unsigned)status);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
