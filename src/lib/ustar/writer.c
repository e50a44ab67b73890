/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of ustar, written; and the rules for paths and links that reader.c applies too. */
#include "lib/ustar/format.h"

#include <errno.h>
#include <string.h>

bool
ustar_path_ok(struct view path)
{
	size_t start = 0;

	if (path.n == 0 || path.n > USTAR_PATH_MAX || view_has(path, '\0'))
		return false;
	for (size_t i = 0; i <= path.n; i++) {
		struct view part;

		if (i < path.n && path.p[i] != '/')
			continue;
		part = view_of(path.p + start, i - start);
		if (part.n == 0 || part.n > 255 || view_is(part, ".") || view_is(part, ".."))
			return false;
		start = i + 1;
	}
	return true;
}

bool
ustar_link_stays(struct view path, struct view target)
{
	size_t depth = 0, start = 0;

	if (target.n == 0 || target.p[0] == '/' || view_has(target, '\0'))
		return false;
	for (size_t i = 0; i < path.n; i++)
		if (path.p[i] == '/')
			depth++;
	for (size_t i = 0; i <= target.n; i++) {
		struct view part;

		if (i < target.n && target.p[i] != '/')
			continue;
		part = view_of(target.p + start, i - start);
		start = i + 1;
		if (part.n == 0 || view_is(part, "."))
			continue;
		if (!view_is(part, "..")) {
			/*
			 * Below a name of the target nothing is counted upwards again: that name may itself be a
			 * link, and ".." behind it would leave from wherever it leads.
			 */
			for (size_t j = i; j + 2 < target.n; j++)
				if (memcmp(target.p + j, "/..", 3) == 0 &&
					(j + 3 == target.n || target.p[j + 3] == '/'))
					return false;
			return true;
		}
		if (depth == 0)
			return false;
		depth--;
	}
	return true;
}

uint32_t
ustar_checksum(const uint8_t block[static USTAR_BLOCK])
{
	size_t from = offsetof(struct ustar_block, checksum), to = from + 8;
	uint32_t sum = 0;

	for (size_t i = 0; i < USTAR_BLOCK; i++)
		sum += i >= from && i < to ? ' ' : block[i];
	return sum;
}

/* n - 1 octal digits and a NUL. */
static void
put_octal(char *to, size_t n, uint64_t v)
{
	to[n - 1] = '\0';
	for (size_t i = n - 1; i-- > 0; v >>= 3)
		to[i] = (char)('0' + (v & 7));
	must(v == 0);
}

/* Name alone, or prefix and name around a slash. */
static int
put_path(struct ustar_block *b, struct view path, struct err *err)
{
	if (path.n <= sizeof(b->name)) {
		memcpy(b->name, path.p, path.n);
		return 0;
	}
	for (size_t i = path.n - sizeof(b->name) - 1; i < path.n && i <= sizeof(b->prefix); i++) {
		if (path.p[i] != '/' || i == 0 || i + 1 == path.n)
			continue;
		memcpy(b->prefix, path.p, i);
		memcpy(b->name, path.p + i + 1, path.n - i - 1);
		return 0;
	}
	return err_set(
		err, -ENAMETOOLONG, "a path of %zu bytes does not fit the archive format", path.n);
}

int
ustar_put(const struct ustar_entry *e, uint8_t ret_block[static USTAR_BLOCK], struct err *err)
{
	struct view path = view_str(e->path), target = view_str(e->target);
	struct ustar_block b = {.magic = "ustar", .version = {'0', '0'}};
	int r;

	if (!ustar_path_ok(path))
		return err_set(err, path.n > USTAR_PATH_MAX ? -ENAMETOOLONG : -EINVAL,
			"not a path for an archive");
	if ((target.n > 0) != (e->kind == USTAR_SYMLINK) ||
		(e->size > 0 && e->kind != USTAR_REGULAR) || e->mode > 07777)
		return err_set(err, -EINVAL, "an entry that contradicts its kind");
	if (e->size > USTAR_SIZE_MAX || e->mtime > USTAR_SIZE_MAX)
		return err_set(
			err, -EFBIG, "a file of 8 GiB or more does not fit the archive format");
	r = put_path(&b, path, err);
	if (r < 0)
		return r;
	put_octal(b.mode, sizeof(b.mode), e->mode);
	put_octal(b.uid, sizeof(b.uid), 0);
	put_octal(b.gid, sizeof(b.gid), 0);
	put_octal(b.size, sizeof(b.size), e->size);
	put_octal(b.mtime, sizeof(b.mtime), e->mtime);
	b.type = e->kind == USTAR_REGULAR ? '0' : e->kind == USTAR_DIRECTORY ? '5' : '2';
	memcpy(b.link, target.p, target.n);
	memcpy(ret_block, &b, sizeof(b));
	put_octal(b.checksum, 7, ustar_checksum(ret_block));
	b.checksum[7] = ' ';
	memcpy(ret_block, &b, sizeof(b));
	return 0;
}
