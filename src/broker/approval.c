/* SPDX-License-Identifier: Apache-2.0 */
/* See approval.h. */
#include "broker/approval.h"

#include "lib/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static int
look(int fd, struct stat *st, struct err *err)
{
	if (fd < 0)
		return err_errno(err, "approvers");
	if (fstat(fd, st) < 0)
		return err_errno(err, "look at approvers");
	if (!S_ISREG(st->st_mode) || st->st_uid != 0 || (st->st_mode & 022) != 0)
		return err_set(err, -EPERM,
			"approvers: it must be a file of root that nobody else can write");
	if (st->st_size > APPROVERS_BYTES_MAX)
		return err_set(err, -E2BIG, "approvers: larger than %u bytes",
			(unsigned)APPROVERS_BYTES_MAX);
	return 0;
}

static int
read_file(int fd, struct approvers *ret, struct err *err)
{
	auto_free uint8_t *bytes = malloc(APPROVERS_BYTES_MAX + 1);
	size_t n = 0;

	if (bytes == NULL)
		return err_set(err, -ENOMEM, "no memory for approvers");
	if (fd_read_upto(fd, bytes, APPROVERS_BYTES_MAX + 1, &n, err) < 0)
		return err->code;
	if (n > APPROVERS_BYTES_MAX)
		return err_set(err, -E2BIG, "approvers: it grew while it was read");
	return approvers_read(view_of(bytes, n), ret, err);
}

static int64_t
nanoseconds(const struct timespec *t)
{
	return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

static void
forget(struct approval *a)
{
	if (a->good)
		approvers_done(&a->approvers);
	a->good = false;
}

bool
approval_refresh(struct approval *a)
{
	auto_fd int fd = openat(
		a->trust, "approvers", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct approvers fresh;
	struct err err = {0};
	struct stat st = {0};
	bool first = !a->seen;

	a->seen = true;
	if (look(fd, &st, &err) == 0) {
		if (!first && a->inode == st.st_ino && a->size == (uint64_t)st.st_size &&
			a->mtime_ns == nanoseconds(&st.st_mtim) &&
			a->ctime_ns == nanoseconds(&st.st_ctim))
			return false;
		a->inode = st.st_ino;
		a->size = (uint64_t)st.st_size;
		a->mtime_ns = nanoseconds(&st.st_mtim);
		a->ctime_ns = nanoseconds(&st.st_ctim);
		forget(a);
		if (read_file(fd, &fresh, &err) == 0) {
			a->approvers = fresh;
			a->good = true;
			a->fault[0] = '\0';
			return true;
		}
	} else {
		forget(a);
		a->inode = a->size = 0;
		a->mtime_ns = a->ctime_ns = 0;
		if (!first && strcmp(a->fault, err.text) == 0)
			return false;
	}
	(void)snprintf(a->fault, sizeof(a->fault), "%s", err.text);
	return true;
}

void
approval_done(struct approval *a)
{
	forget(a);
}

const struct approvers *
approval_now(const struct approval *a)
{
	return a->good ? &a->approvers : NULL;
}
