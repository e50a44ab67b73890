/* SPDX-License-Identifier: Apache-2.0 */
/* The person's terminal in raw mode, put back on every way out of the block that holds the variable. */
#pragma once

#include "lib/base/err.h"

#include <stdbool.h>
#include <termios.h>

struct terminal {
	bool raw;
	struct termios before;
};

/* -ENOTTY when standard input or output is none. */
int terminal_check(struct err *err) MUST_CHECK;

int terminal_raw(struct terminal *t, struct err *err) MUST_CHECK;
void terminal_restore(struct terminal *t);

static inline void
terminal_cleanup(struct terminal *t)
{
	terminal_restore(t);
}
#define auto_terminal __attribute__((cleanup(terminal_cleanup)))

/* 24 and 80 when it does not say. */
void terminal_size(unsigned *ret_rows, unsigned *ret_columns);
