/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a directory; see input.h. */
#include "config/input.h"

#include "lib/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static void
tell(struct inputs *in, const struct operations_sink *sink, const char *name, const char *text)
{
	in->faults++;
	sink->on_fault(sink->ctx, name, (struct place){1, 1}, text);
}

static bool
ends_in(const char *name, const char *suffix)
{
	size_t n = strlen(name), m = strlen(suffix);

	return n > m && strcmp(name + n - m, suffix) == 0;
}

/* What an editor or a package manager leaves beside (.x.swp, x.yaml~, x.yaml.dpkg-old) is passed over; x.yml was meant. */
static bool
wanted(struct inputs *in, const struct operations_sink *sink, const char *name)
{
	size_t ok = strspn(
		name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");

	if (name[0] == '.')
		return false;
	if (ends_in(name, ".yml")) {
		tell(in, sink, name, "only files whose names end in .yaml are read; rename it");
		return false;
	}
	if (!ends_in(name, ".yaml"))
		return false;
	if (name[ok] != '\0' || strlen(name) >= INPUT_NAME_BYTES) {
		tell(in, sink, "",
			"a file in the directory has a name that is longer than 63 bytes or has "
			"more "
			"than letters, digits, '.', '_' and '-'");
		return false;
	}
	return true;
}

static int
by_name(const void *a, const void *b)
{
	const struct input *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* NULL: it can be read. Who else could write it could say what the host does. */
static const char *
why_not(int fd)
{
	struct stat st;

	if (fd < 0)
		return errno == ELOOP    ? "this is a symbolic link; put the file itself here"
		       : errno == EACCES ? "you may not read this file"
					 : "this file cannot be opened";
	if (fstat(fd, &st) < 0)
		return "this file cannot be opened";
	if (!S_ISREG(st.st_mode))
		return "this is not a regular file";
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return "others than its owner may write this file; take that away: chmod go-w";
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return "somebody else owns this file and may change it: chown root";
	return NULL;
}

static void
open_one(struct inputs *in, const struct operations_sink *sink, int dir, struct input *file)
{
	int fd auto_fd = openat(
		dir, file->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
	const char *why = why_not(fd);

	if (why == NULL)
		file->fd = take_fd(&fd);
	else
		tell(in, sink, file->name, why);
}

static int
list(int fd, struct inputs *in, const struct operations_sink *sink, struct err *err)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	DIR *dir = own < 0 ? NULL : fdopendir(own);

	if (dir == NULL) {
		if (own >= 0)
			(void)close(own); /* only read */
		return err_errno(err, "the directory");
	}
	rewinddir(dir);
	for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
		if (!wanted(in, sink, e->d_name))
			continue;
		if (in->n == OPERATIONS_FILES_MAX) {
			tell(in, sink, "", "the directory has more than 64 such files");
			break;
		}
		(void)snprintf(in->file[in->n].name, INPUT_NAME_BYTES, "%.*s", INPUT_NAME_BYTES - 1,
			e->d_name);
		in->file[in->n++].fd = -1;
	}
	(void)closedir(dir);
	return 0;
}

int
inputs_open(int fd, struct inputs *ret, const struct operations_sink *sink, struct err *err)
{
	struct stat st;
	int r;

	*ret = (struct inputs){.n = 0};
	if (fstat(fd, &st) < 0)
		return err_errno(err, "the directory");
	if (!S_ISDIR(st.st_mode)) {
		ret->n = 1;
		ret->file[0].fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		return ret->file[0].fd < 0 ? err_errno(err, "the file") : 0;
	}
	r = list(fd, ret, sink, err);
	if (r < 0)
		return r;
	qsort(ret->file, ret->n, sizeof(ret->file[0]), by_name);
	for (size_t i = 0; i < ret->n; i++)
		open_one(ret, sink, fd, &ret->file[i]);
	return 0;
}

int
inputs_read(struct inputs *in, const struct operations_sink *sink, struct err *err)
{
	for (size_t i = 0; i < in->n; i++) {
		struct input *file = &in->file[i];
		int r;

		if (file->fd < 0)
			continue;
		file->text = malloc(OPERATIONS_FILE_BYTES_MAX + 1);
		if (file->text == NULL)
			return err_set(err, -ENOMEM, "no memory to read the files");
		r = fd_read_upto(
			file->fd, file->text, OPERATIONS_FILE_BYTES_MAX + 1, &file->n, err);
		if (r < 0)
			return err_context(err, "%s", file->name);
		if (file->n > OPERATIONS_FILE_BYTES_MAX) {
			tell(in, sink, file->name, "the file is larger than 256 KiB; divide it");
			file->n = 0;
		}
	}
	return 0;
}

void
inputs_done(struct inputs *in)
{
	for (size_t i = 0; i < in->n; i++) {
		free(in->file[i].text);
		if (in->file[i].fd >= 0)
			(void)close(in->file[i].fd); /* only read */
	}
	in->n = 0;
}
