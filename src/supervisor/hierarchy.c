/* SPDX-License-Identifier: Apache-2.0 */
/* Where cgroup hierarchies are; see hierarchy.h. */
#include "supervisor/hierarchy.h"

#include "supervisor/text.h"

#include <errno.h>

/* One line of mountinfo: what stands where. False when it is not a line of mountinfo. */
static bool
mount_line(struct view line, struct view *root, struct view *at, struct view *type,
	struct view *options)
{
	struct view word, rest = line;

	*root = text_word_at(line, 3);
	*at = text_word_at(line, 4);
	while (text_word(&rest, &word))
		if (view_is(word, "-")) {
			*type = text_word_at(rest, 0);
			*options = text_word_at(rest, 2);
			return at->n != 0 && type->n != 0;
		}
	return false;
}

/* Our group: "0::/path" for v2, "number:controllers:/path" for v1. */
static bool
own_group(struct view groups, const char *controller, struct view *ret)
{
	struct view line;

	while (text_line(&groups, &line)) {
		const uint8_t *a = line.n == 0 ? NULL : memchr(line.p, ':', line.n);
		const uint8_t *end = line.p + line.n;
		const uint8_t *b = a == NULL ? NULL : memchr(a + 1, ':', (size_t)(end - a - 1));
		struct view names;

		if (b == NULL)
			continue;
		names = view_of(a + 1, (size_t)(b - a - 1));
		if (controller == NULL ? names.n == 0 : text_list_has(names, ',', controller)) {
			*ret = view_of(b + 1, (size_t)(end - b - 1));
			return true;
		}
	}
	return false;
}

/* The part of the group's path that lies below the mounted root, without the leading '/'. */
static struct view
below(struct view group, struct view root)
{
	if (root.n > 1) {
		if (group.n < root.n || memcmp(group.p, root.p, root.n) != 0 ||
			(group.n > root.n && group.p[root.n] != '/'))
			return view_of(
				NULL, 0); /* mounted from elsewhere: its root is all that we see */
		group = view_skip(group, root.n);
	}
	while (group.n != 0 && group.p[0] == '/')
		group = view_skip(group, 1);
	return group;
}

int
hierarchy_find(
	struct view mountinfo, struct view groups, const char *controller, char *ret, size_t n)
{
	struct view line, group;

	if (!own_group(groups, controller, &group))
		return -ENOENT;
	while (text_line(&mountinfo, &line)) {
		struct view root, at, type, options, rest;
		int r;

		if (!mount_line(line, &root, &at, &type, &options) ||
			!view_is(type, controller == NULL ? "cgroup2" : "cgroup") ||
			(controller != NULL && !text_list_has(options, ',', controller)))
			continue;
		rest = below(group, root);
		r = snprintf(ret, n, "%.*s/%.*s", VIEW_ARGS(at), VIEW_ARGS(rest));
		return r < 0 || (size_t)r >= n ? -ERANGE : 0;
	}
	return -ENOENT;
}
