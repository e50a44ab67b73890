/* SPDX-License-Identifier: Apache-2.0 */
/* What runs in the children of PID 1. Descriptors 0, 1, 2 are the job's, CHILD_CONTROL_FD leads to PID 1. */
#pragma once

#include "job.h"

/* reaper.c: makes the command, waits for it, kills on order, reports. */
NORETURN void reaper_main(const struct job *j);

/* file_ops.c: does the file operation and reports. */
NORETURN void file_main(const struct job *j);

/* command.c: what is to be executed, laid out before the process is made. */
struct command {
	const struct job *job; /* borrowed */
	char **argv;           /* owned: room for two words in front, see argv[0] */
	char **env;            /* owned */
	char *path;            /* owned: room for a program's path */
	const char *cwd;       /* borrowed: the job's path, else its HOME, else "/" */
	const char *search;    /* borrowed from env: PATH, or the default */
};

/* 0 or a positive errno. */
int command_make(const struct job *j, struct command *ret) MUST_CHECK;

/*
 * In the process between vfork and execve: gives up everything, executes. Writes errno to *ret_fault, which
 * the parent shares, and ends the process when it cannot.
 */
NORETURN void command_become(const struct command *c, volatile int *ret_fault);
