/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors; see fd.h. */
#include "lib/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int
fd_write_all(int fd, const void *p, size_t n, struct err *err)
{
	const uint8_t *at = p;

	while (n > 0) {
		ssize_t r = write(fd, at, n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return err_errno(err, "write");
		at += r;
		n -= (size_t)r;
	}
	return 0;
}

int
fd_read_upto(int fd, void *p, size_t n, size_t *ret_n, struct err *err)
{
	uint8_t *at = p;
	size_t done = 0;

	while (done < n) {
		ssize_t r = read(fd, at + done, n - done);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return err_errno(err, "read");
		if (r == 0)
			break;
		done += (size_t)r;
	}
	*ret_n = done;
	return 0;
}

int
fd_read_sealed(int fd, const char *what, size_t max, uint8_t **ret, size_t *ret_n, struct err *err)
{
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	int have = fcntl(fd, F_GET_SEALS);
	auto_free uint8_t *p = NULL;
	struct stat st;
	size_t n, at = 0;

	if (have < 0 || (have & seals) != seals)
		return err_set(err, -EINVAL, "the %s is not a sealed memory file", what);
	if (fstat(fd, &st) < 0)
		return err_errno(err, "fstat of the %s", what);
	if (st.st_size < 0 || (uintmax_t)st.st_size > max)
		return err_set(err, -EINVAL, "the %s has more than %zu bytes", what, max);
	n = (size_t)st.st_size;
	p = malloc(n + 1);
	if (p == NULL)
		return err_set(err, -ENOMEM, "no memory for the %s", what);
	while (at < n) {
		ssize_t got = pread(fd, p + at, n - at, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return err_errno(err, "reading the %s", what);
		at += (size_t)got;
	}
	*ret = take_ptr(p);
	*ret_n = n;
	return 0;
}

int
fd_set_nonblock(int fd, struct err *err)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return err_errno(err, "fcntl O_NONBLOCK");
	return 0;
}

int
fd_set_cloexec(int fd, bool on, struct err *err)
{
	if (fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) < 0)
		return err_errno(err, "fcntl FD_CLOEXEC");
	return 0;
}

int
fd_close_from(int first, struct err *err)
{
	if (close_range((unsigned)first, ~0U, 0) < 0)
		return err_errno(err, "close_range");
	return 0;
}

int
fd_arrange(const int *fds, size_t n, int first, struct err *err)
{
	enum { MAX = 16 };
	int high[MAX];

	must(n <= MAX);
	for (size_t i = 0; i < n; i++) {
		high[i] = fcntl(fds[i], F_DUPFD, first + MAX);
		if (high[i] < 0)
			return err_errno(err, "dup descriptor %zu", i);
	}
	for (size_t i = 0; i < n; i++)
		if (dup2(high[i], first + (int)i) < 0)
			return err_errno(err, "place descriptor %zu", i);
	return fd_close_from(first + (int)n, err);
}
