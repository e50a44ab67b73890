/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what apt-get indextargets and dpkg's status file say; build.c calls this. */
#include "template/apt.h"
#include "template/child.h"
#include "template/limits.h"
#include "template/tree.h"

#include "lib/base/fd.h"

#include <errno.h>
#include <fcntl.h>

/* The part before the first `c`; *v keeps what is behind it. */
static struct view
cut(struct view *v, uint8_t c)
{
	const uint8_t *at = v->n != 0 ? memchr(v->p, c, v->n) : NULL;
	size_t n = at != NULL ? (size_t)(at - v->p) : v->n;
	struct view head = view_of(v->p, n);

	*v = view_skip(*v, n + (at != NULL));
	return head;
}

static bool
release_is(struct view release, const char *suite)
{
	struct view rest = view_skip(release, strlen(suite));

	return view_starts(release, suite) &&
	       (rest.n == 0 || view_is(rest, "-updates") || view_is(rest, "-security"));
}

static int
source_add(struct view line, const char *suite, struct strings *ret, struct err *err)
{
	struct view origin = cut(&line, ' '), release = cut(&line, ' ');
	struct view component = cut(&line, ' '), uri = line;
	char *text auto_free = NULL;

	if (!view_is(origin, "Debian") || !view_is(component, "main") ||
		!release_is(release, suite))
		return 0;
	if (asprintf(&text, "deb %.*s %.*s main", VIEW_ARGS(uri), VIEW_ARGS(release)) < 0)
		return err_set(err, -ENOMEM, "no memory");
	for (size_t i = 0; i < ret->n; i++) {
		if (strcmp(ret->v[i], text) == 0)
			return 0;
	}
	return strings_add(ret, view_str(text)) < 0 ? err_set(err, -E2BIG, "too many archives") : 0;
}

int
apt_sources(const char *suite, struct strings *ret, struct err *err)
{
	const char *const argv[] = {"/usr/bin/apt-get", "indextargets", "--format",
		"$(ORIGIN) $(CODENAME) $(COMPONENT) $(REPO_URI)", "Created-By: Packages", NULL};
	const char *const envp[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", NULL};
	struct buf out auto_buf = {0};
	const struct child c = {.argv = argv, .envp = envp, .out = &out};
	struct view rest;
	int r;

	buf_init(&out, LIMIT_TARGETS_BYTES);
	r = child_run(&c, err);
	if (r < 0)
		return r;
	rest = buf_view(&out);
	while (rest.n != 0) {
		r = source_add(cut(&rest, '\n'), suite, ret, err);
		if (r < 0)
			return r;
	}
	if (ret->n == 0)
		return err_set(err, -ENOENT,
			"apt on this host knows no archive of Debian %s: add one and run apt-get "
			"update",
			suite);
	strings_sort(ret);
	return 0;
}

struct stanza {
	struct view package, version;
	bool installed;
};

static int
stanza_end(struct stanza *s, struct strings *ret, struct err *err)
{
	char *text auto_free = NULL;
	struct stanza was = *s;

	*s = (struct stanza){0};
	if (!was.installed || was.package.n == 0)
		return 0;
	if (!view_utf8(was.package) || !view_utf8(was.version))
		return err_set(err, -EUCLEAN, "the package list is not UTF-8");
	if (asprintf(&text, "%.*s=%.*s", VIEW_ARGS(was.package), VIEW_ARGS(was.version)) < 0)
		return err_set(err, -ENOMEM, "no memory");
	return strings_add(ret, view_str(text)) < 0 ? err_set(err, -E2BIG, "too many packages") : 0;
}

static int
status_parse(struct view text, struct strings *ret, struct err *err)
{
	struct stanza s = {0};

	while (text.n != 0) {
		struct view line = cut(&text, '\n');
		int r;

		if (view_starts(line, "Package: "))
			s.package = view_skip(line, 9);
		else if (view_starts(line, "Version: "))
			s.version = view_skip(line, 9);
		else if (view_is(line, "Status: install ok installed"))
			s.installed = true;
		if (line.n != 0)
			continue;
		r = stanza_end(&s, ret, err);
		if (r < 0)
			return r;
	}
	return stanza_end(&s, ret, err);
}

int
apt_versions(int root, struct strings *ret, struct err *err)
{
	struct buf text auto_buf = {0};
	int fd auto_fd = tree_open(root, "/var/lib/dpkg/status", O_RDONLY);
	uint8_t *room;
	size_t n;
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_errno(err, "/var/lib/dpkg/status");
	buf_init(&text, LIMIT_DPKG_STATUS_BYTES);
	room = buf_room(&text, LIMIT_DPKG_STATUS_BYTES);
	if (room == NULL)
		return err_set(err, -ENOMEM, "no memory");
	r = fd_read_upto(fd, room, LIMIT_DPKG_STATUS_BYTES, &n, err);
	if (r < 0)
		return r;
	buf_grew(&text, n);
	r = status_parse(buf_view(&text), ret, err);
	strings_sort(ret);
	return r;
}
