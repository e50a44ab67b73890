/* SPDX-License-Identifier: Apache-2.0 */
/* What configuration and policies say, by the compiler that the daemon uses. */
#pragma once

#include "lib/base/err.h"
#include "lib/action/operation.h"
#include "lib/egress/policy.h"
#include "proto_gen.h"

#include <stdio.h>

/* file NULL: all options have their defaults. A configuration with faults is -EINVAL. */
int check_settings(const char *file, struct settings *ret, struct err *err) MUST_CHECK;

/* A directory of operations, compiled; faults are counted. With any, *ret is not touched. */
int check_operations(
	const char *dir, struct catalogue *ret, unsigned *ret_faults, struct err *err) MUST_CHECK;

/*
 * A file or directory of policies, compiled. Faults are told to `out` (NULL: to nobody), each with its place, and counted; with any, *ret is not
 * touched.
 */
int check_policies(const char *file, FILE *out, struct policies *ret, unsigned *ret_faults,
	struct err *err) MUST_CHECK;
