/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal; see terminal.h. */
#include "cli/terminal.h"

#include <errno.h>
#include <sys/ioctl.h>

enum { CELLS_MAX = 1000 };

int
terminal_check(struct err *err)
{
	if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1)
		return err_set(err, -ENOTTY,
			"a shell needs a terminal; use demilune sandbox exec without one");
	return 0;
}

int
terminal_raw(struct terminal *t, struct err *err)
{
	struct termios raw;

	if (tcgetattr(STDIN_FILENO, &t->before) < 0)
		return err_errno(err, "the terminal");
	raw = t->before;
	cfmakeraw(&raw);
	if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0)
		return err_errno(err, "the terminal");
	t->raw = true;
	return 0;
}

void
terminal_restore(struct terminal *t)
{
	if (t->raw)
		(void)tcsetattr(
			STDIN_FILENO, TCSADRAIN, &t->before); /* nothing can be done if it fails */
	t->raw = false;
}

void
terminal_size(unsigned *ret_rows, unsigned *ret_columns)
{
	struct winsize size = {0};

	*ret_rows = 24;
	*ret_columns = 80;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row == 0 || size.ws_col == 0)
		return;
	*ret_rows = size.ws_row < CELLS_MAX ? size.ws_row : CELLS_MAX;
	*ret_columns = size.ws_col < CELLS_MAX ? size.ws_col : CELLS_MAX;
}
