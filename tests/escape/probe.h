/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The probe: a program that is put into a sandbox and tries what a hostile process would try. Each row of probes.def
 * is one attempt, made in a process of its own by probe.c; the attempts stand in attempt_*.c. It believes nothing
 * about the sandbox but what the runner (test_escape.py) gave it on the command line.
 *
 * An attempt returns WORKED when it got through, an errno when it was refused, OWN when it is a look at many
 * things and found all of them as they should be. The row names which of these mean that the wall held.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

enum { WORKED = 0, OWN = -1 };

/* What the runner knows and the sandbox must not reach. */
struct given {
	const char *canary_path; /* file of the host */
	const char *socket_path; /* listening socket of the host */
	const char *mark;  /* name of what the victims (on the host, in another sandbox) made */
	pid_t host_pid;    /* a process of the host, as the host numbers it */
	uint16_t api_port; /* listening on the host's loopback, 0: none */
	uint64_t memory_bytes, disk_bytes;
	uint32_t inodes, pids, open_files;
	char inherited[200]; /* descriptors that were open at the start beside 0, 1 and 2 */
};

/* What an attempt saw, for the person who reads the report. */
struct note {
	char text[200];
};

#define NOTE(n, ...) ((void)snprintf((n)->text, sizeof((n)->text), __VA_ARGS__))

typedef int attempt_fn(const struct given *g, struct note *n);

/* An attempt that is one call: WORKED unless it gives a negative number. */
#define ATTEMPT(name, expression)                               \
	int try_##name(const struct given *g, struct note *n)   \
	{                                                       \
		(void)g, (void)n;                               \
		errno = 0;                                      \
		return (long)(expression) < 0 ? errno : WORKED; \
	}

#define PROBE(id, class, where, prose, ...) attempt_fn try_##id;
#include "probes.def"
#undef PROBE

/* Serves as victim: everything by which another process could reach it, under the name g->mark. Returns when stdin ends. */
int victim_run(const char *mark, const char *canary);

/* attempt_limits.c: a memory file without end. Does not return where there is a limit. */
int hog_run(void);
/* System V key and TCP port made from a mark; the same on every host. */
uint32_t victim_key(const char *mark);
uint16_t victim_port(const char *mark);
