/* SPDX-License-Identifier: Apache-2.0 */
/* sandboxed PROGRAM ARG...: runs a program under the filter of the sandboxes and nothing else,
   to see that ordinary programs live with it. */
#include "lib/jail/jail.h"

#include "sandbox-syscalls.h"

#include <stdio.h>

int
main(int argc, char **argv)
{
	struct err err;

	if (argc < 2)
		return 2;
	if (jail_privs_lock(&err) != 0 ||
		jail_filter_load(sandbox_syscalls, ARRAY_LEN(sandbox_syscalls), &err) != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	(void)execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
