/* SPDX-License-Identifier: Apache-2.0 */
/* Looking through a directory tree: for attempts that try every file there is. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

/*
 * Calls `look` for each entry below `path`; a directory is entered when look returns true (links never are). Gives up
 * silently where it may not read: the attempt counts what it saw.
 */
void walk(const char *path, bool (*look)(void *owner, const char *path, const struct stat *st),
	void *owner);
