/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as JSON; see rows.h. Numbers are never null: existing clients break on it. */
#include "rows.h"

#include "lib/base/clock.h"
#include "lib/base/hex.h"
#include "lib/base/sha256.h"

static const struct {
	const char *statement, *contains, *trusts;
} boundaries[BOUNDARY_MAX] = {
#define BOUNDARY(kind, statement, contains, trusts) \
	[BOUNDARY_##kind] = {statement, contains, trusts},
#include "boundary.def"
#undef BOUNDARY
};

static void
key_u64(struct json_out *o, const char *key, uint64_t v)
{
	json_out_key(o, key);
	json_out_u64(o, v);
}

void
row_time(struct json_out *o, const char *key, uint64_t real_ms)
{
	char text[CLOCK_TEXT];

	if (real_ms == 0)
		return;
	clock_text(real_ms, text);
	json_out_key_str(o, key, view_str(text));
}

void
row_digest(struct json_out *o, const char *key, const uint8_t *digest)
{
	char text[7 + SHA256_TEXT] = "sha256:";

	hex_encode(digest, SHA256_BYTES, text + 7);
	json_out_key_str(o, key, view_str(text));
}

void
row_id(struct json_out *o, const char *key, const char *prefix, const struct id *id)
{
	char text[ID_TEXT];

	if (id_is_zero(id))
		return;
	id_text(id, prefix, text);
	json_out_key_str(o, key, view_str(text));
}

/* The next NUL-terminated string of a blob; what has no NUL is its own end. */
static struct view
next_string(struct view *rest)
{
	const uint8_t *nul = rest->n == 0 ? NULL : memchr(rest->p, 0, rest->n);
	size_t n = nul == NULL ? rest->n : (size_t)(nul - rest->p);
	struct view v = view_of(rest->p, n);

	*rest = view_skip(*rest, nul == NULL ? n : n + 1);
	return v;
}

void
row_strings(struct json_out *o, const char *key, struct view strings)
{
	json_out_key(o, key);
	json_out_array_begin(o);
	while (strings.n > 0)
		json_out_str(o, next_string(&strings));
	json_out_array_end(o);
}

void
row_map(struct json_out *o, const char *key, struct view pairs)
{
	json_out_key(o, key);
	json_out_object_begin(o);
	while (pairs.n > 0) {
		struct view name = next_string(&pairs);

		json_out_key_view(o, name);
		json_out_str(o, next_string(&pairs));
	}
	json_out_object_end(o);
}

void
row_limits(struct json_out *o, const struct limits *l)
{
	json_out_key(o, "limits");
	json_out_object_begin(o);
	key_u64(o, "memory_mb", l->memory_bytes >> 20);
	key_u64(o, "disk_mb", l->disk_bytes >> 20);
	key_u64(o, "disk_inodes", l->disk_inodes);
	key_u64(o, "pids", l->pids);
	key_u64(o, "cpu_milli", l->cpu_milli);
	key_u64(o, "open_files", l->open_files);
	json_out_object_end(o);
}

void
row_usage(struct json_out *o, const struct usage *u)
{
	key_u64(o, "memory_bytes", u->memory_bytes);
	key_u64(o, "memory_peak_bytes", u->memory_peak_bytes);
	key_u64(o, "cpu_us", u->cpu_us);
	key_u64(o, "pids", u->pids);
	key_u64(o, "oom_kills", u->oom_kills);
	key_u64(o, "pids_refused", u->pids_refused);
	key_u64(o, "disk_used_bytes", u->disk_used_bytes);
	key_u64(o, "disk_free_bytes", u->disk_free_bytes);
	key_u64(o, "inodes_free", u->inodes_free);
}

/* Without a policy the engine has an empty name; the word for it is that of `defaults.policy`. */
static void
policy_name_out(struct json_out *o, struct view policy)
{
	json_out_key_str(o, "policy", policy.n > 0 ? policy : view_str("none"));
}

static void
boundary_out(struct json_out *o, enum boundary kind)
{
	json_out_key(o, "boundary");
	json_out_object_begin(o);
	json_out_key_str(o, "kind", view_str(boundary_text(kind)));
	json_out_key_str(o, "statement", view_str(boundaries[kind].statement));
	json_out_key_str(o, "contains", view_str(boundaries[kind].contains));
	json_out_key_str(o, "trusts", view_str(boundaries[kind].trusts));
	json_out_object_end(o);
}

static void
facts_out(struct json_out *o, const struct facts *f)
{
	char caps[24];

	json_out_key(o, "measured");
	json_out_object_begin(o);
	key_u64(o, "host_pid", f->host_pid);
	key_u64(o, "uid_base", f->uid_base);
	key_u64(o, "uid_count", f->uid_count);
	key_u64(o, "namespaces_own", f->namespaces_own);
	key_u64(o, "namespaces_owner_host", f->namespaces_owner_host);
	key_u64(o, "userns_owner", f->userns_owner);
	(void)snprintf(caps, sizeof(caps), "%016llx", (unsigned long long)f->cap_effective);
	json_out_key_str(o, "cap_effective", view_str(caps));
	(void)snprintf(caps, sizeof(caps), "%016llx", (unsigned long long)f->cap_bounding);
	json_out_key_str(o, "cap_bounding", view_str(caps));
	json_out_key_bool(o, "no_new_privs", f->no_new_privs != 0);
	key_u64(o, "seccomp_mode", f->seccomp_mode);
	json_out_key_bool(o, "root_read_only", f->root_read_only != 0);
	json_out_key_bool(o, "root_idmapped", f->root_idmapped != 0);
	key_u64(o, "mounts", f->mounts);
	key_u64(o, "mounts_writable", f->mounts_writable);
	key_u64(o, "mounts_unexpected", f->mounts_unexpected);
	key_u64(o, "mounts_without_nosuid", f->mounts_without_nosuid);
	key_u64(o, "mounts_without_nodev", f->mounts_without_nodev);
	key_u64(o, "routes", f->routes);
	key_u64(o, "captured", f->captured);
	key_u64(o, "interfaces", f->interfaces);
	key_u64(o, "cgroup_version", f->cgroup_version);
	key_u64(o, "socket_bytes", f->socket_bytes);
	json_out_object_end(o);
}

static void
timings_out(struct json_out *o, const struct timings *t, uint32_t boot_us)
{
	json_out_key(o, "timings");
	json_out_object_begin(o);
	key_u64(o, "cloned_us", t->cloned_us);
	key_u64(o, "mounted_us", t->mounted_us);
	key_u64(o, "started_us", t->started_us);
	key_u64(o, "measured_us", t->measured_us);
	key_u64(o, "ready_us", boot_us);
	json_out_object_end(o);
}

static void
proof_out(struct json_out *o, const struct proof *p)
{
	json_out_key(o, "proof");
	json_out_object_begin(o);
	key_u64(o, "processes", p->processes);
	key_u64(o, "cgroups", p->cgroups);
	key_u64(o, "mounts", p->mounts);
	key_u64(o, "namespaces", p->namespaces);
	key_u64(o, "journal", p->journal);
	key_u64(o, "teardown_us", p->teardown_us);
	json_out_object_end(o);
}

void
row_life(struct json_out *o, const struct msg_sandbox_row *m)
{
	uint64_t now = clock_real_ms();

	key_u64(o, "ttl_seconds", m->ttl_ms / 1000);
	key_u64(o, "ttl_left_seconds", m->ttl_left_ms / 1000);
	if (m->ttl_left_ms > 0)
		row_time(o, "expires_at", now + m->ttl_left_ms);
	key_u64(o, "idle_limit_seconds", m->idle_ms / 1000);
	key_u64(o, "idle_seconds",
		m->idle_since_ms == 0 || m->idle_since_ms > now ? 0
								: (now - m->idle_since_ms) / 1000);
	json_out_key_bool(o, "persistent", m->persistent);
}

void
row_sandbox(struct json_out *o, const struct msg_sandbox_row *m)
{
	bool ended = m->state == SANDBOX_STATE_GONE || m->state == SANDBOX_STATE_FAILED;

	json_out_object_begin(o);
	row_id(o, "id", ID_SANDBOX, &m->sandbox);
	row_id(o, "task", ID_TASK, &m->task);
	json_out_key_str(o, "tenant", m->tenant);
	json_out_key_str(o, "template", m->template);
	json_out_key_str(o, "template_asked", m->template_asked);
	row_digest(o, "template_digest", m->template_digest);
	json_out_key_str(o, "status", view_str(sandbox_state_text(m->state)));
	json_out_key_str(o, "reason", view_str(sandbox_reason_text(m->reason)));
	key_u64(o, "cpu", m->limits.cpu_milli < 1000 ? 1 : m->limits.cpu_milli / 1000);
	key_u64(o, "memory_mb", m->limits.memory_bytes >> 20);
	key_u64(o, "disk_mb", m->limits.disk_bytes >> 20);
	json_out_key_str(o, "guest_ip", view_of(NULL, 0));
	row_map(o, "metadata", m->metadata);
	policy_name_out(o, m->policy);
	if (m->policy.n > 0)
		row_digest(o, "policy_digest", m->policy_digest);
	row_time(o, "created_at", m->created_ms);
	row_time(o, "ended_at", m->ended_ms);
	key_u64(o, "boot_ms", (m->boot_us + 999) / 1000);
	json_out_key_str(o, "boot_mode", view_str(boundary_text(m->boundary)));
	json_out_key_bool(o, "replayed", m->replayed);
	row_life(o, m);
	boundary_out(o, m->boundary);
	row_limits(o, &m->limits);
	facts_out(o, &m->facts);
	timings_out(o, &m->timings, m->boot_us);
	if (ended) {
		proof_out(o, &m->proof);
		json_out_key(o, "used");
		json_out_object_begin(o);
		row_usage(o, &m->usage);
		json_out_object_end(o);
	}
	json_out_object_end(o);
}

void
row_job(struct json_out *o, const struct msg_job_row *m)
{
	static const uint8_t none[SHA256_BYTES];

	json_out_object_begin(o);
	row_id(o, "id", ID_JOB, &m->job);
	row_id(o, "sandbox", ID_SANDBOX, &m->sandbox);
	json_out_key_str(o, "kind", view_str(job_kind_text(m->kind)));
	json_out_key_str(o, "reason", view_str(job_reason_text(m->reason)));
	if (m->reason == JOB_REASON_SANDBOX_ENDED)
		json_out_key_str(
			o, "sandbox_reason", view_str(sandbox_reason_text(m->sandbox_reason)));
	json_out_key_int(o, "code", m->code);
	json_out_key_int(o, "uid", m->uid);
	json_out_key_str(o, "text", m->text);
	json_out_key_str(o, "cwd", m->cwd);
	row_time(o, "started_at", m->started_ms);
	row_time(o, "ended_at", m->ended_ms);
	key_u64(o, "timeout_ms", m->timeout_ms);
	key_u64(o, "wall_us", m->wall_us);
	key_u64(o, "cpu_us", m->cpu_us);
	key_u64(o, "memory_peak_bytes", m->memory_peak_bytes);
	json_out_key_bool(o, "holders", m->holders);
	key_u64(o, "stdin_bytes", m->stdin_bytes);
	key_u64(o, "stdout_seen", m->stdout_seen);
	key_u64(o, "stdout_kept", m->stdout_kept);
	key_u64(o, "stderr_seen", m->stderr_seen);
	key_u64(o, "stderr_kept", m->stderr_kept);
	if (memcmp(m->content, none, sizeof(none)) != 0)
		row_digest(o, "content", m->content);
	if (memcmp(m->argv_digest, none, sizeof(none)) != 0)
		row_digest(o, "argv_digest", m->argv_digest);
	json_out_object_end(o);
}

void
row_task(struct json_out *o, const struct msg_task_row *m)
{
	json_out_object_begin(o);
	row_id(o, "id", ID_TASK, &m->task);
	json_out_key_str(o, "tenant", m->tenant);
	json_out_key_str(o, "template", m->template);
	json_out_key_str(o, "state", view_str(task_state_text(m->state)));
	row_time(o, "created_at", m->created_ms);
	row_time(o, "closed_at", m->closed_ms);
	key_u64(o, "sandboxes", m->sandboxes);
	key_u64(o, "sandboxes_live", m->sandboxes_live);
	key_u64(o, "jobs", m->jobs);
	key_u64(o, "inputs", m->inputs);
	key_u64(o, "records", m->records);
	row_id(o, "sandbox", ID_SANDBOX, &m->live_sandbox);
	row_map(o, "labels", m->labels);
	policy_name_out(o, m->policy);
	json_out_object_end(o);
}

void
row_page_begin(struct request *req)
{
	json_out_object_begin(request_out(req));
	json_out_key(&req->out, "items");
	json_out_array_begin(&req->out);
}

void
row_page_end(struct request *req, bool more)
{
	json_out_array_end(&req->out);
	json_out_key_bool(&req->out, "more", more);
	json_out_object_end(&req->out);
	request_json(req, 200);
}

int
row_label(const struct request *req, struct buf *ret, struct err *err)
{
	struct view v = request_param(req, "label");
	const uint8_t *equals = v.n == 0 ? NULL : memchr(v.p, '=', v.n);

	if (v.n == 0)
		return 0;
	if (equals == NULL || equals == v.p)
		return refuse(err, BAD_REQUEST, "label must be key=value");
	buf_add(ret, v.p, (size_t)(equals - v.p));
	buf_add_byte(ret, 0);
	buf_add_view(ret, view_skip(v, (size_t)(equals - v.p) + 1));
	buf_add_byte(ret, 0);
	if (buf_check(ret) < 0)
		return refuse(err, BAD_REQUEST, "label may have at most 500 bytes");
	return 0;
}

int
row_after(const struct request *req, const char *prefix, struct id *ret, struct err *err)
{
	struct view v = request_param(req, "after");

	memset(ret, 0, sizeof(*ret));
	if (v.n == 0 || id_parse(v, prefix, ret) == 0)
		return 0;
	return refuse(err, BAD_REQUEST, "after must be an identifier that begins with %s", prefix);
}
