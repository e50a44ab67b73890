/* SPDX-License-Identifier: Apache-2.0 */
/* Whole reads and writes, and what a process does with inherited descriptors. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/view.h"

#include <sys/types.h>

/* All n bytes, or an error; interrupted calls go on. For files and pipes, not for loops. */
int fd_write_all(int fd, const void *p, size_t n, struct err *err) MUST_CHECK;

/* Up to n bytes until end of file; *ret_n says how many. */
int fd_read_upto(int fd, void *p, size_t n, size_t *ret_n, struct err *err) MUST_CHECK;

/*
 * All of a sealed memory file, from its beginning, wherever its offset is: nobody, not even who handed it over, can change it behind the
 * reader's back. -EINVAL: a seal (write, shrink, grow, seal) is missing, or there are more than max bytes. `what` is its name in the sentence.
 * *ret is owned by the caller.
 */
int fd_read_sealed(int fd, const char *what, size_t max, uint8_t **ret, size_t *ret_n,
	struct err *err) MUST_CHECK;

int fd_set_nonblock(int fd, struct err *err) MUST_CHECK;
int fd_set_cloexec(int fd, bool on, struct err *err) MUST_CHECK;

/* Closes one that may be none, and forgets it. For descriptors whose close loses nothing. */
static inline void
fd_close_kept(int *fd)
{
	if (*fd >= 0)
		(void)close(take_fd(fd)); /* nothing was written through it that could still fail */
}

/* Closes every descriptor from `first` up (close_range(2), Linux 5.9). */
int fd_close_from(int first, struct err *err) MUST_CHECK;

/*
 * Puts fds[i] at number first + i for i < n and closes all above, as a child does before
 * execve. Moves through high numbers, so that the sets may overlap. Not close-on-exec.
 */
int fd_arrange(const int *fds, size_t n, int first, struct err *err) MUST_CHECK;
