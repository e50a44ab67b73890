/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes that every file uses: results that must be looked at, resources that
 * are released when their variable goes out of scope, and explicit moves out of them.
 *
 * A variable with auto_* is initialised where it is declared. There is no `goto` in
 * this tree: clang refuses to jump over such a variable, gcc cleans up garbage.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define MUST_CHECK   __attribute__((warn_unused_result))
#define PRINTF(f, a) __attribute__((format(printf, f, a)))
#define NORETURN     __attribute__((noreturn))
#define UNUSED       __attribute__((unused))

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static inline void
free_cleanup(void *p)
{
	free(*(void **)p);
}

static inline void
fd_cleanup(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd); /* nothing can be done about a failing close here */
}

#define auto_free __attribute__((cleanup(free_cleanup)))
#define auto_fd   __attribute__((cleanup(fd_cleanup)))

/* Moves the value out and leaves nothing to clean up. */
#define take_ptr(p)                     \
	__extension__({                 \
		__typeof__(p) t_ = (p); \
		(p) = NULL;             \
		t_;                     \
	})

static inline int
take_fd(int *fd)
{
	int t = *fd;

	*fd = -1;
	return t;
}

/* The object that contains `member`. */
#define container_of(ptr, type, member)                                           \
	__extension__({                                                           \
		const __typeof__(((type *)0)->member) *m_ = (ptr);                \
		(type *)(void *)((char *)(uintptr_t)m_ - offsetof(type, member)); \
	})

/*
 * must(x): a condition that only a bug of ours can break. Always compiled in, never
 * used for input, and it ends the process.
 */
#define must(x) ((x) ? (void)0 : must_failed(__FILE__, __LINE__, #x))
NORETURN void must_failed(const char *file, int line, const char *what);
