/* SPDX-License-Identifier: Apache-2.0 */
/* Looking through a directory tree; see walk.h. */
#include "walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

void
walk(const char *path, bool (*look)(void *owner, const char *path, const struct stat *st),
	void *owner)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		char at[PATH_MAX];
		struct stat st;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (snprintf(at, sizeof(at), "%s/%s", strcmp(path, "/") == 0 ? "" : path,
			    entry->d_name) >= (int)sizeof(at))
			continue;
		if (lstat(at, &st) == 0 && look(owner, at, &st) && S_ISDIR(st.st_mode))
			walk(at, look, owner);
	}
	if (dir != NULL)
		(void)closedir(dir);
}
