/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demilune-template: argv to one verb. `demilune template build` runs this program; it is
 * apart from the CLI because building needs root and the CLI must not. Exit codes: 0 done,
 * 1 failed, 2 usage, 3 manifest refused (problems on standard error, one a line).
 */
#include "template/build.h"
#include "template/limits.h"
#include "template/store.h"

#include <errno.h>

enum { EXIT_USAGE = 2, EXIT_MANIFEST = 3, PLACES = 64, ARGS = 2 };

struct options {
	const char *state, *source;
	const char *places[PLACES];
	size_t n_places;
	const char *args[1 + ARGS]; /* verb and its arguments */
	size_t n_args;
};

typedef int verb_fn(const struct options *o, struct err *err);

static int
verb_build(const struct options *o, struct err *err)
{
	struct buf problems auto_buf = {0};
	char *dir auto_free = NULL;
	bool is_path = strchr(o->args[1], '/') != NULL;
	int r;

	buf_init(&problems, LIMIT_MANIFEST_PROBLEM_BYTES);
	if (asprintf(&dir, "%s%s%s", is_path ? "" : o->source, is_path ? "" : "/", o->args[1]) < 0)
		return err_set(err, -ENOMEM, "no memory");
	r = template_build(dir, o->state, &problems, err);
	if (r < 0 && problems.n != 0) {
		(void)fwrite(problems.p, 1, problems.n, stderr);
		exit(EXIT_MANIFEST);
	}
	return r;
}

static int
verb_import(const struct options *o, struct err *err)
{
	struct manifest m auto_manifest = {0};
	int r = manifest_imported(o->args[1], o->places, o->n_places, &m, err);

	return r < 0 ? r : template_import(&m, o->args[2], o->state, err);
}

static int
verb_list(const struct options *o, struct err *err)
{
	struct store s auto_store;
	int r = store_open_read(o->state, &s, err);

	return r < 0 ? r : store_list(&s, err);
}

static int
verb_show(const struct options *o, struct err *err)
{
	struct store s auto_store;
	struct buf record auto_buf = {0};
	char digest[SHA256_TEXT];
	int r;

	buf_init(&record, LIMIT_RECORD_BYTES);
	r = store_open_read(o->state, &s, err);
	if (r == 0)
		r = store_resolve(&s, o->args[1], digest, err);
	if (r == 0)
		r = store_record(&s, digest, &record, err);
	if (r == 0)
		(void)printf("%.*s\n", (int)record.n, (const char *)record.p);
	return r;
}

static const struct {
	const char *name;
	verb_fn *run;
	size_t args;
} verbs[] = {
#define VERB(name, function, args, usage, what) {name, function, args},
#include "template/verbs.def"
#undef VERB
};

NORETURN static void
usage(const char *why)
{
	(void)fprintf(stderr, "demilune-template: %s\n", why);
#define VERB(name, function, args, line, what) \
	(void)fprintf(stderr, "  demilune-template %-19s %s\n", line, what);
#include "template/verbs.def"
#undef VERB
#define OPTION(name, argument, what) \
	(void)fprintf(stderr, "  %-9s %-6s %s\n", name, argument, what);
#include "template/options.def"
#undef OPTION
	exit(EXIT_USAGE);
}

static void
option_set(struct options *o, const char *name, const char *value)
{
	if (value == NULL)
		usage("an option lacks its argument");
	if (strcmp(name, "--state") == 0)
		o->state = value;
	else if (strcmp(name, "--source") == 0)
		o->source = value;
	else if (strcmp(name, "--place") == 0 && o->n_places < PLACES)
		o->places[o->n_places++] = value;
	else
		usage(name);
}

int
main(int argc, char **argv)
{
	struct options o = {
		.state = "/var/lib/demilune", .source = "/usr/share/demilune/templates"};
	struct err err = {0};

	for (int i = 1; i < argc; i++) {
		if (argv[i][0] == '-') {
			option_set(&o, argv[i], i + 1 < argc ? argv[i + 1] : NULL);
			i++;
		} else if (o.n_args < ARRAY_LEN(o.args)) {
			o.args[o.n_args++] = argv[i];
		} else {
			usage("too many arguments");
		}
	}
	for (size_t i = 0; o.n_args != 0 && i < ARRAY_LEN(verbs); i++) {
		if (strcmp(o.args[0], verbs[i].name) != 0)
			continue;
		if (o.n_args != 1 + verbs[i].args)
			usage("wrong number of arguments");
		if (verbs[i].run(&o, &err) == 0)
			return fflush(stdout) == 0 ? 0 : 1;
		(void)fprintf(stderr, "demilune-template: %s\n", err.text);
		return 1;
	}
	usage("which verb?");
}
