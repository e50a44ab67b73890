/* SPDX-License-Identifier: Apache-2.0 */
/* The other programs; see program.h. */
#include "cli/program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *file, *folder, *what;
} programs[] = {
#define PROGRAM(name, file, folder, what) {file, folder, what},
#include "cli/programs.def"
#undef PROGRAM
};

const char *
program_file(enum program p)
{
	return programs[p].file;
}

const char *
program_what(enum program p)
{
	return programs[p].what;
}

int
program_find(enum program p, char ret[static PROGRAM_PATH_MAX], struct err *err)
{
	char own[PROGRAM_PATH_MAX], path[PROGRAM_PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
	char *slash;

	if (n <= 0)
		return err_errno(err, "cannot tell where demilune is installed");
	own[n] = '\0';
	slash = strrchr(own, '/');
	must(slash != NULL);
	*slash = '\0';
	for (int built = 0; built < 2; built++) {
		int len = built == 0 ? snprintf(path, sizeof(path), "%s/%s", own, programs[p].file)
				     : snprintf(path, sizeof(path), "%s/../%s/%s", own,
					       programs[p].folder, programs[p].file);

		if (len < 0 || (size_t)len >= sizeof(path) || access(path, X_OK) != 0)
			continue;
		memcpy(ret, path, (size_t)len + 1);
		return 0;
	}
	return err_set(err, -ENOENT, "%s is not installed beside demilune", programs[p].file);
}

int
program_become(enum program p, char **argv, struct err *err)
{
	char path[PROGRAM_PATH_MAX];
	int r = program_find(p, path, err);

	if (r < 0)
		return r;
	argv[0] = path;
	(void)execv(path, argv);
	return err_errno(err, "cannot start %s", programs[p].file);
}

const char *
program_state(const char *option)
{
	const char *state = option != NULL ? option : getenv("DEMILUNE_STATE");

	return state != NULL && state[0] != '\0' ? state : NULL;
}
