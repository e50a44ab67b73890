/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of the ledger. The first byte chooses: an entry, or a whole file. An entry that is accepted is the same bytes when it is written again,
 * and goes into the index or is refused there. A file is opened or refused, and one that was opened opens again with as many entries.
 */
#include "broker/index.h"
#include "broker/limits.h"

#include "lib/base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
one_entry(struct index *x, struct view bytes)
{
	auto_buf struct buf room = {.max = 4 * LIMIT_ENTRY_BYTES}, out = {.max = LIMIT_ENTRY_BYTES};
	struct err err;
	struct entry e;

	if (bytes.n > LIMIT_ENTRY_BYTES || entry_read(bytes, &room, &e, &err) < 0)
		return;
	must(entry_write(&e, &out, &err) == 0);
	must(view_eq(buf_view(&out), bytes));
	(void)!index_add(x, &e, 4, bytes.n, &err);
}

/* Lines are entries. */
static void
entries(struct view all)
{
	struct index x;

	index_init(&x);
	while (all.n != 0) {
		const uint8_t *end = memchr(all.p, '\n', all.n);
		size_t n = end == NULL ? all.n : (size_t)(end - all.p);

		one_entry(&x, view_of(all.p, n));
		all = view_skip(all, n + 1);
	}
	index_done(&x);
}

static void
file(struct view bytes)
{
	static int dir = -1;
	static char name[64];
	struct ledger *l = NULL;
	struct err err;
	uint64_t cut, again;
	int fd;

	if (dir < 0) {
		(void)snprintf(name, sizeof(name), "/tmp/demilune-fuzz-ledger-%d", getpid());
		(void)mkdir(name, 0700);
		dir = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		must(dir >= 0);
	}
	fd = openat(dir, "ledger", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	must(fd >= 0 && fd_write_all(fd, bytes.p, bytes.n, &err) == 0);
	(void)close(fd);
	if (ledger_open(dir, &l, &cut, &err) < 0)
		return;
	must(cut <= bytes.n);
	again = ledger_entries(l);
	ledger_close(l);
	must(ledger_open(dir, &l, &cut, &err) == 0);
	must(cut == 0 && ledger_entries(l) == again);
	ledger_close(l);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	if (n == 0)
		return 0;
	if (data[0] == 'f')
		file(view_of(data + 1, n - 1));
	else
		entries(view_of(data + 1, n - 1));
	return 0;
}
