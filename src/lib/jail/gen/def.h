/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The syscall lists (*-syscalls.def) as the generator sees them: read by def.c, turned
 * into a BPF program by emit.c. Build-time only; nothing here is linked into a process.
 *
 * A list is a sequence of rows that is also valid input for the C preprocessor, so that a
 * test can read the same file as C and compare (tests/unit/jail):
 *
 *   DEFAULT(KILL)  DEFAULT(ALLOW)  DEFAULT(ERRNO, ENOSYS)   a call without a row; once, in the main list
 *   FOREIGN(KILL)  FOREIGN(ERRNO, ENOSYS)                   another ABI (x32, int 0x80); once, main list
 *   INCLUDE("base-syscalls.def")                            the rows of a list beside base-syscalls.def
 *   MARK(nfsservctl)                                        see below
 *   COMPLETE(name)                                          every call up to this one has a row, or no build
 *   ALLOW(read)  KILL(read)  ERRNO(EPERM, mount)
 *   ALLOW_IF(socket, ARG(0) == AF_UNIX)  ERRNO_IF(EPERM, ...)  KILL_IF(...)
 *
 * A condition is up to CONDS_MAX terms joined by &&; a term is ARG(i) == V, ARG(i) != V or
 * (ARG(i) & V) == V; V is a number, a constant of constants.def, or (A | B). Rows of one
 * call are tried in order; the first that holds decides; none: the default. A row that can
 * never be reached is an error.
 *
 * MARK is the row by which a process finds that its own filter is loaded, and not only one that it
 * inherited: the call with the list's mark (a hash of its name) as first argument gets EL3HLT,
 * which no kernel gives. The mark stands in the last instruction, which is never reached.
 *
 * Only the LOW 32 BITS of an argument are compared. The kernel cuts int arguments the same
 * way, so high garbage cannot slip past a denial (ioctl) and cannot break a permission.
 * Never write a condition on a pointer or a 64-bit value.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/view.h"

#include <stdio.h>

enum {
	DEF_ROWS_MAX = 1024,  /* rows of one list with its includes */
	DEF_CONDS_MAX = 6,    /* terms of one condition */
	DEF_NR_END = 1024,    /* syscall numbers at or above this have no row */
	DEF_FILE_MAX = 65536, /* bytes of one list */
	DEF_FILES_MAX = 4,    /* the list and what it includes */
	DEF_INSNS_MAX = 4096, /* BPF_MAXINSNS */
};

struct sock_filter;

struct def_cond {
	uint32_t arg, mask, value;
	bool differs; /* != instead of == */
};

struct def_row {
	int nr;
	uint32_t action; /* SECCOMP_RET_* with data */
	size_t conds_n;  /* 0: always */
	struct def_cond conds[DEF_CONDS_MAX];
};

struct def {
	uint32_t arch; /* SCMP_ARCH_*, which is AUDIT_ARCH_* */
	uint32_t unlisted, foreign;
	bool has_unlisted, has_foreign;
	uint32_t mark;
	bool has_mark;
	int complete; /* highest number that must have a row, -1: none */
	struct def_row rows[DEF_ROWS_MAX];
	size_t rows_n;
	char includes[DEF_FILES_MAX][256]; /* paths read beside the list */
	size_t includes_n;
};

/* The architecture is "x86_64" or "aarch64" (meson's cpu_family); the mark comes from the name. */
int def_init(struct def *d, const char *arch, const char *name, struct err *err) MUST_CHECK;

/* Reads a list; INCLUDE looks in `dir`. The sentence of an error starts with file:line. */
int def_read_file(struct def *d, const char *path, const char *dir, struct err *err) MUST_CHECK;
int def_read_text(struct def *d, const char *name, struct view text, const char *dir,
	struct err *err) MUST_CHECK;

/* What must hold once everything is read: both defaults given, COMPLETE kept. */
int def_check(const struct def *d, struct err *err) MUST_CHECK;

/* Compiles into out[max]; *ret_n says how many instructions. */
int def_compile(const struct def *d, struct sock_filter *out, size_t max, size_t *ret_n,
	struct err *err) MUST_CHECK;
