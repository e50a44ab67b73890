/* SPDX-License-Identifier: Apache-2.0 */
/* The other programs of demilune, found by where this one is; nothing is looked up in PATH. */
#pragma once

#include "lib/base/err.h"

enum program {
#define PROGRAM(name, file, folder, what) PROGRAM_##name,
#include "cli/programs.def"
#undef PROGRAM
	PROGRAMS
};

enum { PROGRAM_PATH_MAX = 4096 };

const char *program_file(enum program p);
const char *program_what(enum program p);

/* The path of an executable file; -ENOENT. */
int program_find(enum program p, char ret[static PROGRAM_PATH_MAX], struct err *err) MUST_CHECK;

/* Becomes that program; argv[0] is filled in. Returns only when it failed. */
int program_become(enum program p, char **argv, struct err *err) MUST_CHECK;

/* The state directory of the host when nobody names another; as in demilune.yaml(5). */
#define PROGRAM_STATE_DIR "/var/lib/demilune"

/* What --state says or else DEMILUNE_STATE; NULL: neither. */
const char *program_state(const char *option);
