/* SPDX-License-Identifier: Apache-2.0 */
/* Help; see help.h. */
#include "cli/help.h"

#include "cli/answer.h"
#include "cli/verbs.h"

#include <errno.h>

void
help_all(FILE *out)
{
	size_t n;
	const struct verb *verbs = args_verbs(&n);

	(void)fprintf(out, "demilune VERB [OPTION...] [ARGUMENT...]\n\n");
	for (size_t i = 0; i < n; i++)
		(void)fprintf(out, "  %-12s%-11s%s\n", verbs[i].verb, verbs[i].sub, verbs[i].what);
	(void)fprintf(out, "\nSee demilune help VERB, and demilune(1).\n");
}

void
help_verb(const struct verb *v, FILE *out)
{
	(void)fprintf(out, "demilune %s%s%s [OPTION...]%s%s\n    %s\n\n", v->verb,
		v->sub[0] != '\0' ? " " : "", v->sub, v->arguments[0] != '\0' ? " " : "",
		v->arguments, v->what);
	for (unsigned i = 0; i < OPTIONS; i++) {
		const struct option_row *o = args_option((enum option)i);
		char left[64];

		if ((v->options >> i & 1) == 0)
			continue;
		(void)snprintf(left, sizeof(left), "%s%c%s%s %s", o->letter != '\0' ? "-" : "",
			o->letter != '\0' ? o->letter : ' ', o->letter != '\0' ? ", " : "   ",
			o->name, o->argument);
		(void)fprintf(
			out, "  %-26s %s%s\n", left, o->what, o->many ? "; may stand again" : "");
	}
}

void
help_group(const char *verb, FILE *out)
{
	size_t n;
	const struct verb *verbs = args_verbs(&n);

	for (size_t i = 0; i < n; i++)
		if (strcmp(verbs[i].verb, verb) == 0)
			(void)fprintf(out, "demilune %s %s%s%s\n    %s\n", verb, verbs[i].sub,
				verbs[i].arguments[0] != '\0' ? " " : "", verbs[i].arguments,
				verbs[i].what);
	(void)fprintf(out, "\nOptions: demilune help %s.\n", verb);
}

int
verb_help(struct cli *cli, struct err *err)
{
	const struct args *a = &cli->args;
	bool found = false;
	size_t n;
	const struct verb *verbs = args_verbs(&n);

	if (a->n_rest == 0) {
		help_all(stdout);
		return answer_done(err);
	}
	for (size_t i = 0; i < n; i++) {
		if (strcmp(verbs[i].verb, a->rest[0]) != 0 ||
			(a->n_rest == 2 && strcmp(verbs[i].sub, a->rest[1]) != 0))
			continue;
		if (found)
			(void)putchar('\n');
		help_verb(&verbs[i], stdout);
		found = true;
	}
	if (!found)
		return err_set(err, -EINVAL, "no such verb; see demilune help");
	return answer_done(err);
}
