/* SPDX-License-Identifier: Apache-2.0 */
/* Writable places; see place.h. The texts come from the engine, the directories from the image. */
#include "supervisor/place.h"

#include "supervisor/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

bool
place_is_shared(const char *path)
{
	return strcmp(path, "/tmp") == 0 || strcmp(path, "/var/tmp") == 0;
}

/* Absolute, made of names that are not "." or "..", without empty parts. */
static bool
plain(const char *path)
{
	if (path[0] != '/' || path[1] == '\0')
		return false;
	for (const char *p = path; *p != '\0';) {
		size_t n = strcspn(++p, "/");

		if (n == 0 || (p[0] == '.' && (n == 1 || (n == 2 && p[1] == '.'))))
			return false;
		for (size_t i = 0; i < n; i++)
			if ((unsigned char)p[i] <= ' ' || p[i] == '\\' || p[i] == 127)
				return false; /* mountinfo would show them escaped */
		p += n;
	}
	return true;
}

/* The one path is the other, or inside it. */
static bool
overlap(const char *a, const char *b)
{
	size_t na = strlen(a), nb = strlen(b), n = na < nb ? na : nb;

	return strncmp(a, b, n) == 0 && (na == nb || (na > n ? a[n] : b[n]) == '/');
}

static bool
reserved(const char *path)
{
	return overlap(path, "/dev") || overlap(path, "/proc") || overlap(path, "/sys");
}

static int
open_inside(int root, const char *path)
{
	struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};

	return (int)syscall(SYS_openat2, root, path + 1, &how, sizeof(how));
}

/* Notes the directories that the image has directly in this place. */
static int
dirs_read(int fd, const char *place, struct places *ret, struct err *err)
{
	DIR *list = fdopendir(fd);
	struct dirent *entry;
	int r = 0;

	if (list == NULL) {
		(void)close(fd); /* only read */
		return err_set(err, -ENOMEM, "no memory");
	}
	while (r == 0 && (entry = readdir(list)) != NULL) {
		struct place *dir = &ret->dir[ret->ndirs];

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		if (ret->ndirs == PLACE_DIRS_MAX ||
			snprintf(dir->path, sizeof(dir->path), "%s/%s", place, entry->d_name) >=
				(int)sizeof(dir->path))
			r = err_set(err, -E2BIG,
				"the image has too many directories, or too long names, in %s",
				place);
		else if (!plain(dir->path))
			r = err_set(err, -EINVAL,
				"the image has a directory with an unusual name in %s", place);
		else
			ret->ndirs++;
	}
	(void)closedir(list); /* only read */
	return r;
}

int
places_read(
	const char (*texts)[PLACE_BYTES], size_t n, int root, struct places *ret, struct err *err)
{
	struct places places = {0};

	must(n <= PLACE_MAX);
	for (size_t i = 0; i < n && texts[i][0] != '\0'; i++) {
		const char *path = texts[i];
		int fd, r;

		if (!plain(path) || reserved(path))
			return err_set(err, -EINVAL,
				"place %zu of the template is not a path that can be one", i);
		for (size_t k = 0; k < i; k++)
			if (overlap(path, texts[k]))
				return err_set(err, -EINVAL, "the places %s and %s overlap",
					texts[k], path);
		fd = open_inside(root, path);
		if (fd < 0)
			return err_errno(err, "the image has no directory %s", path);
		memcpy(places.place[i].path, path, PLACE_BYTES);
		places.n++;
		r = dirs_read(fd, path, &places, err);
		if (r < 0)
			return r;
	}
	*ret = places;
	return 0;
}
