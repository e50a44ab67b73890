/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manifest as an object: its memory, its defaults for imports, its canonical text.
 * Called by build.c and import.c. It never sees a file; manifest_read.c does.
 */
#include "template/manifest.h"
#include "template/limits.h"
#include "template/path_rule.h"

#include "lib/base/name.h"

#include <errno.h>
#include <stdarg.h>

static int
string_order(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

void
strings_sort(struct strings *s)
{
	if (s->n > 1)
		qsort(s->v, s->n, sizeof(s->v[0]), string_order);
}

static struct view
env_key(const char *line)
{
	const char *eq = strchr(line, '=');

	must(eq != NULL);
	return view_of(line, (size_t)(eq - line));
}

static int
env_order(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return canon_key_compare(env_key(*x), env_key(*y));
}

void
manifest_sort_env(struct manifest *m)
{
	if (m->env.n > 1)
		qsort(m->env.v, m->env.n, sizeof(m->env.v[0]), env_order);
}

int
strings_add(struct strings *s, struct view v)
{
	char **grown;

	s->failed = true;
	if (s->n >= LIMIT_LIST_ITEMS)
		return -E2BIG;
	grown = reallocarray(s->v, s->n + 2, sizeof(s->v[0]));
	if (grown == NULL)
		return -ENOMEM;
	s->v = grown;
	s->v[s->n] = strndup((const char *)v.p, v.n);
	if (s->v[s->n] == NULL)
		return -ENOMEM;
	s->v[++s->n] = NULL;
	s->failed = false;
	return 0;
}

void
strings_addf(struct strings *s, const char *fmt, ...)
{
	char *text auto_free = NULL;
	va_list ap;
	int n;

	if (s->failed)
		return;
	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		text = NULL;
	s->failed = n < 0 || strings_add(s, view_of(text, (size_t)n)) < 0;
}

void
strings_done(struct strings *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i]);
	free(s->v);
	*s = (struct strings){0};
}

void
manifest_init(struct manifest *m)
{
	*m = (struct manifest){0};
}

void
manifest_done(struct manifest *m)
{
	free(m->name);
	free(m->description);
	free(m->suite);
	free(m->hostname);
	free(m->user_name);
	free(m->home);
	strings_done(&m->aliases);
	strings_done(&m->packages);
	strings_done(&m->exclude);
	strings_done(&m->places);
	strings_done(&m->env);
	for (size_t i = 0; i < m->n_finish; i++)
		strings_done(&m->finish[i]);
	free(m->finish);
	manifest_init(m);
}

static const char *const imported_places[] = {
	"/app",
	"/home",
	"/root",
	"/run",
	"/tmp",
	"/var/tmp",
	"/work",
	"/workspace",
};

static const char *const imported_env[] = {
	"HOME=/home/agent",
	"LANG=C.UTF-8",
	"LOGNAME=agent",
	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	"SHELL=/bin/sh",
	"TERM=dumb",
	"USER=agent",
};

static int
add_all(struct strings *s, const char *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int r = strings_add(s, view_str(v[i]));

		if (r < 0)
			return r;
	}
	strings_sort(s);
	return 0;
}

int
manifest_imported(const char *name, const char *const *places, size_t n_places,
	struct manifest *ret, struct err *err)
{
	int r;

	if (!name_ok(view_str(name)))
		return err_set(err, -EINVAL,
			"\"%.64s\" is no template name: 1 to 63 of a-z 0-9 . _ -, starting with a "
			"letter or digit",
			name);
	for (size_t i = 0; i < n_places; i++) {
		if (!path_rule_place(view_str(places[i])))
			return err_set(err, -EINVAL,
				"\"%.64s\" is no place: a plain absolute path outside of system "
				"directories",
				places[i]);
	}
	ret->name = strdup(name);
	ret->description = strdup("imported");
	ret->hostname = strdup("sandbox");
	ret->user_name = strdup("agent");
	ret->home = strdup("/home/agent");
	ret->uid = ret->gid = 10001;
	if (ret->name == NULL || ret->description == NULL || ret->hostname == NULL ||
		ret->user_name == NULL || ret->home == NULL)
		return err_set(err, -ENOMEM, "no memory");
	r = n_places != 0 ? add_all(&ret->places, places, n_places)
			  : add_all(&ret->places, imported_places, ARRAY_LEN(imported_places));
	if (r == 0)
		r = add_all(&ret->env, imported_env, ARRAY_LEN(imported_env));
	manifest_sort_env(ret);
	return r < 0 ? err_set(err, r, "too many places, or no memory") : 0;
}

static void
write_list(struct canon_writer *w, const char *key, const struct strings *s)
{
	canon_key(w, view_str(key));
	strings_write(w, s);
}

static void
write_str(struct canon_writer *w, const char *key, const char *text)
{
	canon_key(w, view_str(key));
	canon_str(w, view_str(text));
}

static void
write_env(struct canon_writer *w, const struct strings *env)
{
	canon_key(w, view_str("env"));
	canon_object_begin(w);
	for (size_t i = 0; i < env->n; i++) {
		struct view key = env_key(env->v[i]);

		canon_key(w, key);
		canon_str(w, view_str(env->v[i] + key.n + 1));
	}
	canon_object_end(w);
}

static void
write_user(struct canon_writer *w, const struct manifest *m)
{
	canon_key(w, view_str("user"));
	canon_object_begin(w);
	canon_key(w, view_str("gid"));
	canon_u64(w, m->gid);
	write_str(w, "home", m->home);
	write_str(w, "name", m->user_name);
	canon_key(w, view_str("uid"));
	canon_u64(w, m->uid);
	canon_object_end(w);
}

void
strings_write(struct canon_writer *w, const struct strings *s)
{
	canon_array_begin(w);
	for (size_t i = 0; i < s->n; i++)
		canon_str(w, view_str(s->v[i]));
	canon_array_end(w);
}

void
manifest_write(const struct manifest *m, struct canon_writer *w)
{
	canon_object_begin(w);
	write_list(w, "aliases", &m->aliases);
	write_str(w, "description", m->description);
	write_env(w, &m->env);
	write_list(w, "exclude", &m->exclude);
	canon_key(w, view_str("finish"));
	canon_array_begin(w);
	for (size_t i = 0; i < m->n_finish; i++)
		strings_write(w, &m->finish[i]);
	canon_array_end(w);
	write_str(w, "hostname", m->hostname);
	write_str(w, "name", m->name);
	write_list(w, "packages", &m->packages);
	write_list(w, "places", &m->places);
	if (m->suite != NULL)
		write_str(w, "suite", m->suite);
	write_user(w, m);
	canon_object_end(w);
}

int
manifest_json(const struct manifest *m, struct buf *ret, struct err *err)
{
	struct canon_writer w;

	canon_begin(&w, ret);
	manifest_write(m, &w);
	return canon_end(&w, err);
}
