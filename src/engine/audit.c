/* SPDX-License-Identifier: Apache-2.0 */
/* Audit records; see audit.h. */
#include "engine/audit.h"

#include "engine/limits.h"
#include "engine/redact.h"
#include "engine/tree.h"
#include "lib/audit/audit.h"
#include "lib/base/clock.h"

#include <errno.h>

int
audit_refuse(int r, const char *what, struct err *err)
{
	if (r != -EILSEQ && r != -E2BIG && r != -ENOBUFS)
		return r;
	return REFUSE(
		err, BAD_REQUEST, "%s that cannot be recorded (too long, or not plain text)", what);
}

static const struct id host_chain;

static void
put_id(struct canon_writer *w, const char *key, const char *prefix, const struct id *id)
{
	char text[ID_TEXT];

	if (id == NULL)
		return;
	id_text(id, prefix, text);
	put_str(w, key, text);
}

/* What the engine does by itself, and what a sandbox asked for, have no caller. */
static void
put_principal(struct canon_writer *w, const struct principal *who)
{
	const char *kind = caller_kind_text(who->kind), *name = who->name;

	if (who->kind == CALLER_KIND_NONE) {
		bool sandbox = strncmp(name, PRINCIPAL_SANDBOX, strlen(PRINCIPAL_SANDBOX)) == 0;

		kind = sandbox ? "sandbox" : "engine";
		name += sandbox ? strlen(PRINCIPAL_SANDBOX) : 0;
	}
	put_str(w, "kind", kind);
	put_str(w, "name", name);
}

static int
compose(const struct audit_event *ev, uint64_t seq, uint64_t number, struct buf *out,
	struct err *err)
{
	struct canon_writer w;

	canon_begin(&w, out);
	canon_object_begin(&w);
	canon_key(&w, view_str("data"));
	canon_object_begin(&w);
	if (ev->data != NULL)
		ev->data(&w, ev->arg);
	canon_object_end(&w);
	put_str(&w, "event", ev->event);
	put_id(&w, "job", ID_JOB, ev->job);
	canon_key(&w, view_str("principal"));
	canon_object_begin(&w);
	put_principal(&w, ev->who);
	canon_object_end(&w);
	if (ev->request_id.n != 0)
		put_view(&w, "request_id", ev->request_id);
	put_id(&w, "sandbox", ID_SANDBOX, ev->sandbox);
	put_u64(&w, "seq", seq);
	if (ev->task != NULL)
		put_id(&w, "task", ID_TASK, ev->task);
	else
		put_str(&w, "task", "host");
	put_u64(&w, "task_seq", number);
	put_str(&w, "tenant", ev->tenant);
	put_u64(&w, "ts_ms", clock_real_ms());
	put_u64(&w, "v", 1);
	canon_object_end(&w);
	return canon_end(&w, err);
}

static int
head_get(struct engine *e, const struct id *chain, uint64_t *ret_records,
	uint8_t ret_head[static 32], struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_CHAIN_GET);
	int r;

	arg_id(&q, chain);
	r = query_one(&q, err);
	if (r < 0)
		return r;
	*ret_records = col_u64(&q);
	col_digest(&q, ret_head);
	return 0;
}

static int
head_set(struct engine *e, const struct id *chain, uint64_t records, const uint8_t head[static 32],
	struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_CHAIN_SET);

	arg_u64(&q, records);
	arg_digest(&q, head);
	arg_id(&q, chain);
	return query_run(&q, err);
}

int
audit_append(struct engine *e, const struct audit_event *ev, struct err *err)
{
	const struct id *chain = ev->task != NULL ? ev->task : &host_chain;
	uint8_t previous[32], digest[32];
	uint64_t records = 0;
	auto_buf struct buf record;
	int r;

	buf_init(&record, 16384); /* the bound of AUDIT_ROW */
	r = head_get(e, chain, &records, previous, err);
	if (r == 0)
		r = compose(ev, tree_size(e->tree) + 1, records + 1, &record, err);
	if (r < 0)
		return r;
	audit_digest(previous, buf_view(&record), digest);
	{
		auto_query struct query q = query_of(e->store, Q_AUDIT_INSERT);

		arg_u64(&q, tree_size(e->tree) + 1);
		arg_id(&q, chain);
		arg_u64(&q, records + 1);
		arg_digest(&q, previous);
		arg_digest(&q, digest);
		arg_blob(&q, buf_view(&record));
		r = query_run(&q, err);
	}
	if (r == 0)
		r = head_set(e, chain, records + 1, digest, err);
	if (r == 0)
		r = tree_add(e, digest, err);
	if (r == 0)
		checkpoint_due(e);
	return r;
}

/* ---- values ---- */

void
put_str(struct canon_writer *w, const char *key, const char *text)
{
	put_view(w, key, view_str(text));
}

void
put_view(struct canon_writer *w, const char *key, struct view v)
{
	canon_key(w, view_str(key));
	canon_text(w, v);
}

void
put_u64(struct canon_writer *w, const char *key, uint64_t v)
{
	canon_key(w, view_str(key));
	canon_int(w, v > (uint64_t)CANON_INT_MAX ? CANON_INT_MAX : (int64_t)v);
}

void
put_i64(struct canon_writer *w, const char *key, int64_t v)
{
	canon_key(w, view_str(key));
	canon_int(w, v);
}

void
put_bool(struct canon_writer *w, const char *key, bool v)
{
	canon_key(w, view_str(key));
	canon_bool(w, v);
}

void
put_digest(struct canon_writer *w, const char *key, const uint8_t d[static 32])
{
	canon_key(w, view_str(key));
	canon_bytes_hex(w, view_of(d, 32));
}

void
put_path(struct canon_writer *w, const char *key, struct view path)
{
	auto_buf struct buf shown;
	char digest_key[32];
	uint8_t digest[32];

	buf_init(&shown, LIMIT_PATH_TEXT);
	redact_text(path, LIMIT_PATH_TEXT, &shown);
	put_view(w, key, buf_view(&shown));
	if (view_eq(buf_view(&shown), path))
		return;
	must(snprintf(digest_key, sizeof(digest_key), "%s_digest", key) < (int)sizeof(digest_key));
	sha256_of(path, digest);
	put_digest(w, digest_key, digest);
}

void
put_limits(struct canon_writer *w, const char *key, const struct limits *l)
{
	canon_key(w, view_str(key));
	canon_object_begin(w);
	put_u64(w, "cpu_milli", l->cpu_milli);
	put_u64(w, "disk_bytes", l->disk_bytes);
	put_u64(w, "disk_inodes", l->disk_inodes);
	put_u64(w, "memory_bytes", l->memory_bytes);
	put_u64(w, "open_files", l->open_files);
	put_u64(w, "pids", l->pids);
	canon_object_end(w);
}

void
put_facts(struct canon_writer *w, const char *key, const struct facts *f)
{
	canon_key(w, view_str(key));
	canon_object_begin(w);
	put_str(w, "boundary", boundary_text(f->boundary));
	put_u64(w, "cap_ambient", f->cap_ambient);
	put_u64(w, "cap_bounding", f->cap_bounding);
	put_u64(w, "cap_effective", f->cap_effective);
	put_u64(w, "cap_inheritable", f->cap_inheritable);
	put_u64(w, "cap_permitted", f->cap_permitted);
	put_u64(w, "captured", f->captured);
	put_u64(w, "cgroup_version", f->cgroup_version);
	put_u64(w, "cpu_milli", f->cpu_milli);
	put_u64(w, "disk_bytes", f->disk_bytes);
	put_u64(w, "disk_inodes", f->disk_inodes);
	put_u64(w, "host_pid", f->host_pid);
	put_u64(w, "interfaces", f->interfaces);
	put_u64(w, "memory_bytes", f->memory_bytes);
	put_u64(w, "mounts", f->mounts);
	put_u64(w, "mounts_unexpected", f->mounts_unexpected);
	put_u64(w, "mounts_without_nodev", f->mounts_without_nodev);
	put_u64(w, "mounts_without_nosuid", f->mounts_without_nosuid);
	put_u64(w, "mounts_writable", f->mounts_writable);
	put_u64(w, "namespaces_own", f->namespaces_own);
	put_u64(w, "namespaces_owner_host", f->namespaces_owner_host);
	put_u64(w, "no_new_privs", f->no_new_privs);
	put_u64(w, "open_files", f->open_files);
	put_u64(w, "pending_signals", f->pending_signals);
	put_u64(w, "pids", f->pids);
	put_u64(w, "root_idmapped", f->root_idmapped);
	put_u64(w, "root_read_only", f->root_read_only);
	put_u64(w, "routes", f->routes);
	put_u64(w, "seccomp_mode", f->seccomp_mode);
	put_u64(w, "socket_bytes", f->socket_bytes);
	put_digest(w, "template", f->template);
	put_u64(w, "uid_base", f->uid_base);
	put_u64(w, "uid_count", f->uid_count);
	put_u64(w, "userns_owner", f->userns_owner);
	canon_object_end(w);
}

void
put_proof(struct canon_writer *w, const char *key, const struct proof *p)
{
	canon_key(w, view_str(key));
	if (p == NULL) {
		canon_null(w);
		return;
	}
	canon_object_begin(w);
	put_u64(w, "cgroups", p->cgroups);
	put_u64(w, "journal", p->journal);
	put_u64(w, "mounts", p->mounts);
	put_u64(w, "namespaces", p->namespaces);
	put_u64(w, "processes", p->processes);
	put_u64(w, "teardown_us", p->teardown_us);
	canon_object_end(w);
}

void
put_usage(struct canon_writer *w, const char *key, const struct usage *u)
{
	canon_key(w, view_str(key));
	canon_object_begin(w);
	put_u64(w, "cpu_us", u->cpu_us);
	put_u64(w, "disk_used_bytes", u->disk_used_bytes);
	put_u64(w, "memory_peak_bytes", u->memory_peak_bytes);
	put_u64(w, "oom_kills", u->oom_kills);
	put_u64(w, "pids_refused", u->pids_refused);
	canon_object_end(w);
}

void
put_strings(struct canon_writer *w, const char *key, struct view strings)
{
	canon_key(w, view_str(key));
	canon_array_begin(w);
	while (strings.n > 0) {
		const uint8_t *end = memchr(strings.p, '\0', strings.n);
		size_t n = end != NULL ? (size_t)(end - strings.p) : strings.n;

		canon_text(w, view_of(strings.p, n));
		strings = view_skip(strings, n + 1);
	}
	canon_array_end(w);
}
