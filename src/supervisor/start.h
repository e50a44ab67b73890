/* SPDX-License-Identifier: Apache-2.0 */
/* What happens once, before the loop. Each step fails with a sentence that says what to do. */
#pragma once

#include "supervisor/supervisor.h"

/*
 * Runs the configuration compiler on this file (NULL: defaults only). All faults are logged as
 * FILE:LINE:COLUMN: sentence.
 */
int start_config(struct supervisor *sv, const char *file, struct err *err) MUST_CHECK;

/* A directory that belongs to root and that nobody else may write to. -ENOENT: there is none. */
int root_dir_open(const char *path, struct err *err) MUST_CHECK;

/* State and run directory, their locks, the local socket. */
int start_dirs(struct supervisor *sv, struct err *err) MUST_CHECK;

/* Own mount namespace, device tree, control groups, uid ranges, descriptors; takes down what an earlier run left. */
int start_host(struct supervisor *sv, struct err *err) MUST_CHECK;

/* Undoes start_dirs and start_host as far as they went. */
void start_undo(struct supervisor *sv);
