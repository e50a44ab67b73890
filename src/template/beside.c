/* SPDX-License-Identifier: Apache-2.0 */
/* See beside.h. */
#include "template/beside.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int
beside_find(const char *name, const char *folder, char ret[static PATH_MAX], struct err *err)
{
	char own[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
	char *slash;

	if (n < 0)
		return err_errno(err, "where this program stands");
	own[n] = '\0';
	slash = strrchr(own, '/');
	must(slash != NULL);
	*slash = '\0';
	if (snprintf(ret, PATH_MAX, "%s/%s", own, name) >= PATH_MAX)
		return err_set(err, -ENAMETOOLONG, "this program stands at too long a path");
	if (access(ret, X_OK) == 0)
		return 0;
	if (folder != NULL && snprintf(ret, PATH_MAX, "%s/%s/%s", own, folder, name) < PATH_MAX &&
		access(ret, X_OK) == 0)
		return 0;
	return err_set(err, -ENOENT, "%s is not beside this program", name);
}
