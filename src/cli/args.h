/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line, read by the tables verbs.def and options.def. Values are checked here, so a handler
 * gets what it can use. Everything is borrowed from argv.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/view.h"

#include <stdbool.h>
#include <stdint.h>

struct cli;

/* >= 0: the exit code; negative with a sentence: demilune failed. */
typedef int verb_fn(struct cli *cli, struct err *err);

enum option {
#define OPTION(id, name, letter, kind, argument, times, what) OPT_##id,
#include "cli/options.def"
#undef OPTION
	OPTIONS
};

enum option_kind {
	KIND_FLAG,
	KIND_TEXT,
	KIND_PAIR,
	KIND_FILES,
	KIND_DURATION,
	KIND_BYTES,
	KIND_CPU,
	KIND_COUNT,
};

struct option_row {
	const char *name;
	char letter; /* 0: none */
	enum option_kind kind;
	const char *argument;
	bool many;
	const char *what;
};

enum { ARGS_ANY = -1, ARGS_NONE = -1, ARGS_GIVEN_MAX = 256 };

struct verb {
	const char *verb, *sub, *arguments;
	verb_fn *run;
	int least, most; /* most ARGS_ANY: no limit */
	int command;     /* ARGS_NONE: none */
	int broken;
	uint64_t options; /* bit 1 << enum option */
	const char *what;
};

struct given {
	enum option option;
	const char *text; /* NULL for a flag */
	int64_t number;   /* milliseconds, bytes, thousandths, count */
};

struct args {
	const struct verb *verb;
	const char *group; /* asked for help about all verbs that begin with this word; else NULL */
	struct given given[ARGS_GIVEN_MAX];
	size_t n_given;
	char *const *rest; /* the arguments */
	size_t n_rest;
};

const struct verb *args_verbs(size_t *ret_n);
const struct option_row *args_option(enum option o);

/*
 * argv without the program's name; it is reordered. -EINVAL with the one line that helps. With --help
 * ret->verb is set and nothing else is checked.
 */
int args_read(struct args *ret, int argc, char **argv, struct err *err) MUST_CHECK;

/* NULL when it was not given. */
const struct given *args_get(const struct args *a, enum option o);
const char *args_text(const struct args *a, enum option o);
bool args_has(const struct args *a, enum option o);

/* Splits HERE:THERE at the last ":/", or says why it is none. */
int args_files(const char *text, struct view *ret_here, const char **ret_there,
	struct err *err) MUST_CHECK;
