/* SPDX-License-Identifier: Apache-2.0 */
/* Text of the kernel; see text.h. */
#include "supervisor/text.h"

#include <errno.h>
#include <fcntl.h>

bool
text_line(struct view *rest, struct view *ret)
{
	const uint8_t *nl;
	size_t n;

	if (rest->n == 0)
		return false;
	nl = memchr(rest->p, '\n', rest->n);
	n = nl == NULL ? rest->n : (size_t)(nl - rest->p);
	*ret = view_of(rest->p, n);
	*rest = view_skip(*rest, n + 1);
	return true;
}

static bool
blank(uint8_t c)
{
	return c == ' ' || c == '\t';
}

bool
text_word(struct view *rest, struct view *ret)
{
	size_t n = 0;

	while (rest->n != 0 && blank(rest->p[0]))
		*rest = view_skip(*rest, 1);
	while (n < rest->n && !blank(rest->p[n]))
		n++;
	if (n == 0)
		return false;
	*ret = view_of(rest->p, n);
	*rest = view_skip(*rest, n);
	return true;
}

struct view
text_word_at(struct view line, size_t n)
{
	struct view word = {0};

	for (size_t i = 0; i <= n; i++)
		if (!text_word(&line, &word))
			return view_of(NULL, 0);
	return word;
}

bool
text_list_has(struct view list, uint8_t separator, const char *item)
{
	size_t from = 0;

	for (size_t i = 0; list.n != 0 && i <= list.n; i++) {
		if (i < list.n && list.p[i] != separator)
			continue;
		if (view_is(view_of(list.p + from, i - from), item))
			return true;
		from = i + 1;
	}
	return false;
}

bool
text_key(struct view text, const char *key, struct view *ret)
{
	struct view line;
	size_t n = strlen(key);

	while (text_line(&text, &line)) {
		if (!view_starts(line, key) || line.n == n || !blank(line.p[n]))
			continue;
		line = view_skip(line, n);
		while (line.n != 0 && blank(line.p[0]))
			line = view_skip(line, 1);
		*ret = line;
		return true;
	}
	return false;
}

int
text_file(int dir, const char *path, char *room, size_t n, struct view *ret)
{
	auto_fd int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;

	if (fd < 0)
		return -errno;
	for (;;) {
		ssize_t r = read(fd, room + used, n - used);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		used += (size_t)r;
		if (r == 0)
			break;
		if (used == n)
			return -EFBIG;
	}
	*ret = view_of(room, used);
	return 0;
}
