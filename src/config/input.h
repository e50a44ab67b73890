/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of the catalogue or of policies: opened by name below descriptor 3 before the process confines itself, read afterwards. A descriptor that is a
 * file itself is one file without a name.
 */
#pragma once

#include "config/operations.h"

enum { INPUT_NAME_BYTES = 64 };

struct input {
	char name[INPUT_NAME_BYTES];
	int fd;        /* owned */
	uint8_t *text; /* owned */
	size_t n;
};

struct inputs {
	struct input file[OPERATIONS_FILES_MAX]; /* ascending by name */
	size_t n;
	unsigned faults; /* told */
};

/* What cannot be opened is a fault at 1:1 of its name. Negative: the directory itself cannot be read. */
int inputs_open(
	int fd, struct inputs *ret, const struct operations_sink *sink, struct err *err) MUST_CHECK;
int inputs_read(struct inputs *in, const struct operations_sink *sink, struct err *err) MUST_CHECK;
void inputs_done(struct inputs *in);
