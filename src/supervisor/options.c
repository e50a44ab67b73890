/* SPDX-License-Identifier: Apache-2.0 */
/* The command line; see options.h and options.def. */
#include "supervisor/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>

static const struct option rows[] = {
#define OPTION(name, letter, argument, prose) {name, (argument) != NULL, NULL, letter},
#include "supervisor/options.def"
#undef OPTION
	{0},
};

int
options_read(int argc, char **argv, struct options *ret, struct err *err)
{
	struct options o = {0};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "", rows, NULL)) >= 0) {
		if (c == 'c')
			o.config = optarg;
		else if (c == 'l')
			o.libexec = optarg;
		else if (c == 'h')
			o.help = true;
		else
			return err_set(err, -EINVAL,
				"unknown option, or one without its argument: %s",
				argv[optind - 1]);
	}
	if (optind != argc)
		return err_set(
			err, -EINVAL, "what is %s? Only options are understood", argv[optind]);
	*ret = o;
	return 0;
}

void
options_print(void)
{
	static const struct {
		const char *name, *argument, *prose;
	} help[] = {
#define OPTION(name, letter, argument, prose) {name, argument, prose},
#include "supervisor/options.def"
#undef OPTION
	};

	(void)puts("usage: demilune-supervisor [options]\n");
	for (size_t i = 0; i < ARRAY_LEN(help); i++)
		(void)printf("  --%s %s\n        %s\n", help[i].name,
			help[i].argument == NULL ? "" : help[i].argument, help[i].prose);
}
