/* SPDX-License-Identifier: Apache-2.0 */
/* The command line; see args.h. */
#include "cli/args.h"

#include "cli/units.h"
#include "cli/verbs.h"

#include <errno.h>
#include <stdio.h>

#define WITH(id)  (UINT64_C(1) << OPT_##id)
#define TALK_ONLY (WITH(SOCKET) | WITH(API))
#define TALK      (TALK_ONLY | WITH(JSON))
#define SHAPE     (WITH(TTL) | WITH(IDLE) | WITH(MEMORY) | WITH(CPU) | WITH(DISK) | WITH(PIDS))
#define COMMAND   (WITH(ENV) | WITH(CWD) | WITH(USER) | WITH(TIMEOUT) | WITH(STDIN) | WITH(TERMINAL))

enum { ANY = ARGS_ANY, NONE = ARGS_NONE, ONCE = 0, MANY = 1 };

_Static_assert(OPTIONS <= 64, "options are bits of a word");

static const struct option_row options[] = {
#define OPTION(id, name, letter, kind, argument, times, what) \
	{name, letter[0], KIND_##kind, argument, times, what},
#include "cli/options.def"
#undef OPTION
};

static const struct verb verbs[] = {
#define VERB(verb, sub, arguments, run, least, most, command, broken, options, what) \
	{verb, sub, arguments, run, least, most, command, broken, (options) | WITH(HELP), what},
#include "cli/verbs.def"
#undef VERB
};

const struct verb *
args_verbs(size_t *ret_n)
{
	*ret_n = ARRAY_LEN(verbs);
	return verbs;
}

const struct option_row *
args_option(enum option o)
{
	return &options[o];
}

/* ---- the verb ---- */

static int
which_sub(const char *verb, struct err *err)
{
	char subs[160] = "";
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (strcmp(verbs[i].verb, verb) == 0 && n < sizeof(subs))
			n += (size_t)snprintf(subs + n, sizeof(subs) - n, "%s%s",
				n == 0 ? "" : ", ", verbs[i].sub);
	return err_set(err, -EINVAL, "%s what? %s", verb, subs);
}

static int
find_verb(struct args *a, int *argc, char ***argv, struct err *err)
{
	bool known = false;

	if (*argc == 0)
		return err_set(err, -EINVAL, "which verb? see demilune help");
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
		const struct verb *v = &verbs[i];
		int words = v->sub[0] == '\0' ? 1 : 2;

		if (strcmp((*argv)[0], v->verb) != 0)
			continue;
		known = true;
		if (words == 2 && (*argc < 2 || strcmp((*argv)[1], v->sub) != 0))
			continue;
		a->verb = v;
		*argc -= words;
		*argv += words;
		return 0;
	}
	if (known && *argc == 2 &&
		(strcmp((*argv)[1], "--help") == 0 || strcmp((*argv)[1], "-h") == 0)) {
		a->group = (*argv)[0];
		return 0;
	}
	if (known)
		return which_sub((*argv)[0], err);
	return err_set(err, -EINVAL, "no verb %.40s; see demilune help", (*argv)[0]);
}

/* ---- values ---- */

static int
read_pair(const char *text, struct err *err)
{
	const char *eq = strchr(text, '=');

	if (eq == NULL || eq == text)
		return err_set(err, -EINVAL, "must be NAME=VALUE");
	return 0;
}

int
args_files(const char *text, struct view *ret_here, const char **ret_there, struct err *err)
{
	const char *there = NULL;

	for (const char *p = text; (p = strstr(p, ":/")) != NULL; p++)
		there = p;
	if (there == NULL || there == text)
		return err_set(
			err, -EINVAL, "must be HERE:THERE, a local file and an absolute path");
	*ret_here = view_of(text, (size_t)(there - text));
	*ret_there = there + 1;
	return 0;
}

static int
read_value(enum option_kind kind, const char *text, int64_t *ret, struct err *err)
{
	struct view here;
	const char *there;

	if (text[0] == '\0' && kind != KIND_FLAG)
		return err_set(err, -EINVAL, "must not be empty");
	switch (kind) {
	case KIND_FLAG:
	case KIND_TEXT:
		return 0;
	case KIND_PAIR:
		return read_pair(text, err);
	case KIND_FILES:
		return args_files(text, &here, &there, err);
	case KIND_DURATION:
		return units_duration(view_str(text), ret, err);
	case KIND_BYTES:
		return units_bytes(view_str(text), ret, err);
	case KIND_CPU:
		return units_cpu(view_str(text), ret, err);
	case KIND_COUNT:
		return units_count(view_str(text), ret, err);
	}
	must(false);
}

/* ---- options ---- */

/* The option that stands in `word`, and the value behind '=' or NULL. */
static int
find_option(const char *word, enum option *ret, const char **ret_value, struct err *err)
{
	const char *eq = strchr(word, '=');
	size_t n = eq != NULL ? (size_t)(eq - word) : strlen(word);

	for (size_t i = 0; i < OPTIONS; i++) {
		const struct option_row *o = &options[i];
		bool is = view_eq(view_of(word, n), view_str(o->name)) ||
			  (o->letter != '\0' && word[0] == '-' && word[1] == o->letter &&
				  word[2] == '\0');

		if (!is)
			continue;
		*ret = (enum option)i;
		*ret_value = eq != NULL ? eq + 1 : NULL;
		return 0;
	}
	return err_set(
		err, -EINVAL, "no option %.*s; see demilune help", (int)(n > 40 ? 40 : n), word);
}

static int
add(struct args *a, enum option o, const char *text, struct err *err)
{
	const struct option_row *row = &options[o];
	struct given *g = &a->given[a->n_given];
	int r;

	if (!row->many && args_has(a, o))
		return err_set(err, -EINVAL, "%s was given twice", row->name);
	if (a->n_given == ARGS_GIVEN_MAX)
		return err_set(err, -E2BIG, "more than %d options", ARGS_GIVEN_MAX);
	*g = (struct given){.option = o, .text = text};
	r = read_value(row->kind, text != NULL ? text : "", &g->number, err);
	if (r < 0)
		return err_context(err, "%s", row->name);
	a->n_given++;
	return 0;
}

/* One option at argv[*i], with its value, which may be the next word. -it is -i -t. */
static int
read_option(struct args *a, int argc, char **argv, int *i, struct err *err)
{
	const char *word = argv[*i], *value = NULL;
	enum option o = OPTIONS;
	int r;

	if (word[1] != '-' && word[1] != '\0' && word[2] != '\0') {
		for (const char *p = word + 1; *p != '\0'; p++) {
			r = find_option((const char[]){'-', *p, '\0'}, &o, &value, err);
			if (r == 0 && options[o].kind != KIND_FLAG)
				r = err_set(err, -EINVAL, "-%c takes a value: -%c %s", *p, *p,
					options[o].argument);
			if (r == 0)
				r = add(a, o, NULL, err);
			if (r < 0)
				return r;
		}
		return 0;
	}
	r = find_option(word, &o, &value, err);
	if (r < 0)
		return r;
	if (options[o].kind == KIND_FLAG)
		return value == NULL ? add(a, o, NULL, err)
				     : err_set(err, -EINVAL, "%s takes no value", options[o].name);
	if (value == NULL && *i + 1 == argc)
		return err_set(err, -EINVAL, "%s needs a value: %s %s", options[o].name,
			options[o].name, options[o].argument);
	if (value == NULL)
		value = argv[++*i];
	return add(a, o, value, err);
}

/* Options from argv[*i] on, up to the first word that is none. */
static int
read_options(struct args *a, int argc, char **argv, int *i, struct err *err)
{
	while (*i < argc && argv[*i][0] == '-' && argv[*i][1] != '\0' &&
		strcmp(argv[*i], "--") != 0) {
		int r = read_option(a, argc, argv, i, err);

		if (r < 0)
			return r;
		++*i;
	}
	return 0;
}

static int
check(const struct args *a, struct err *err)
{
	const struct verb *v = a->verb;
	const char *blank = v->sub[0] != '\0' ? " " : "";

	for (size_t i = 0; i < a->n_given; i++)
		if ((v->options >> a->given[i].option & 1) == 0)
			return err_set(err, -EINVAL, "demilune %s%s%s has no %s", v->verb, blank,
				v->sub, options[a->given[i].option].name);
	if (a->n_rest < (size_t)v->least || (v->most != ARGS_ANY && a->n_rest > (size_t)v->most))
		return err_set(err, -EINVAL, "usage: demilune %s%s%s [OPTION...] %s", v->verb,
			blank, v->sub, v->arguments);
	return 0;
}

int
args_read(struct args *ret, int argc, char **argv, struct err *err)
{
	int i = 0, n = 0, r;

	*ret = (struct args){0};
	r = read_options(ret, argc, argv, &i, err);
	if (r == 0 && i == argc && args_has(ret, OPT_HELP))
		return 0;
	argc -= i;
	argv += i;
	if (r == 0)
		r = find_verb(ret, &argc, &argv, err);
	if (r == 0 && ret->group != NULL)
		return 0;
	/* The arguments are moved together to the front of argv. */
	for (i = 0; r == 0;) {
		r = read_options(ret, argc, argv, &i, err);
		if (r < 0 || i == argc)
			break;
		if (strcmp(argv[i], "--") == 0 || n == ret->verb->command) {
			i += strcmp(argv[i], "--") == 0;
			while (i < argc)
				argv[n++] = argv[i++];
			break;
		}
		argv[n++] = argv[i++];
	}
	if (r < 0)
		return r;
	ret->rest = argv;
	ret->n_rest = (size_t)n;
	return args_has(ret, OPT_HELP) ? 0 : check(ret, err);
}

const struct given *
args_get(const struct args *a, enum option o)
{
	for (size_t i = 0; i < a->n_given; i++)
		if (a->given[i].option == o)
			return &a->given[i];
	return NULL;
}

const char *
args_text(const struct args *a, enum option o)
{
	const struct given *g = args_get(a, o);

	return g != NULL ? g->text : NULL;
}

bool
args_has(const struct args *a, enum option o)
{
	return args_get(a, o) != NULL;
}
