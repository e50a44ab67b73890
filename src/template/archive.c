/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts demilune-unpack on an archive; build.c calls this as root. The program stands beside
 * this one. What it says is bounded, and only a number or a printable sentence is taken from it:
 * it may have been taken over by the archive.
 */
#include "template/archive.h"
#include "template/beside.h"
#include "template/child.h"
#include "template/limits.h"
#include "template/unpack.h"

#include "lib/base/num.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int
archive_unpack(int archive, const char *name, int top, uint64_t *ret_stripped, struct err *err)
{
	char program[PATH_MAX];
	struct buf said auto_buf = {0};
	const char *const argv[] = {program, NULL};
	const char *const envp[] = {"LC_ALL=C.UTF-8", NULL};
	const int fds[] = {archive, top};
	const struct child c = {
		.argv = argv,
		.envp = envp,
		.fds = fds,
		.n_fds = ARRAY_LEN(fds),
		.out = &said,
		.errors_too = true,
	};
	struct view text;
	int r = beside_find("demilune-unpack", NULL, program, err);

	_Static_assert((int)UNPACK_ARCHIVE == (int)CHILD_FIRST_FD &&
			       (int)UNPACK_TOP == (int)CHILD_FIRST_FD + 1,
		"the order of fds");
	if (r < 0)
		return r;
	if (fchown(top, UNPACK_UID, UNPACK_UID) < 0)
		return err_errno(err, "owner of the tree");
	buf_init(&said, LIMIT_FAILURE_BYTES);
	r = child_run(&c, err);
	text = buf_view(&said);
	if (text.n > 0 && text.p[text.n - 1] == '\n')
		text.n--;
	if (r < 0 && text.n == 0)
		return err_context(err, "%s", name);
	if (r < 0)
		return err_set(err, r, "%.60s: %.*s", name, VIEW_ARGS(text));
	if (num_u64(text, LIMIT_TREE_ENTRIES, ret_stripped) < 0)
		return err_set(err, -EPROTO, "%s answers with no number", program);
	return 0;
}
