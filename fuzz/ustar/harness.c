/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of the archive reader. The first byte chooses the bounds and in what pieces the rest is fed. Each
 * entry that is accepted keeps the rules of ustar.h and, written again, is read as the same entry.
 */
#include "lib/ustar/ustar.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
check(bool good)
{
	if (!good)
		abort();
}

static void
check_entry(const struct ustar_entry *e, const struct ustar_bounds *bounds)
{
	uint8_t block[USTAR_BLOCK];
	struct ustar_reader again;
	struct view in, data;
	struct err err = {0};

	if (e->path[0] == '\0') {
		check(e->kind == USTAR_DIRECTORY);
		return;
	}
	check(ustar_path_ok(view_str(e->path)));
	check((e->target[0] != '\0') == (e->kind == USTAR_SYMLINK));
	check(e->kind != USTAR_SYMLINK || bounds->links_out ||
		ustar_link_stays(view_str(e->path), view_str(e->target)));
	check(e->size == 0 || e->kind == USTAR_REGULAR);
	if (ustar_put(e, block, &err) < 0)
		return; /* a split that only a foreign writer makes */
	ustar_reader_init(&again, bounds);
	again.bounds.bytes = UINT64_MAX;
	in = view_of(block, sizeof(block));
	check(ustar_next(&again, &in, &data, &err) == USTAR_ENTRY);
	check(again.entry.kind == e->kind && again.entry.mode == e->mode &&
		again.entry.size == e->size && again.entry.mtime == e->mtime);
	check(view_eq(view_str(again.entry.path), view_str(e->path)));
	check(view_eq(view_str(again.entry.target), view_str(e->target)));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct ustar_bounds bounds = {.entries = 8, .bytes = 4096};
	struct ustar_reader r;
	struct view left = view_of(data, n);
	struct err err = {0};
	uint64_t bytes = 0;
	uint32_t entries = 0;
	size_t piece;

	if (n == 0)
		return 0;
	bounds.links_out = (data[0] & 1) != 0;
	piece = (size_t)(data[0] >> 1) * 13 + 1;
	left = view_skip(left, 1);
	ustar_reader_init(&r, &bounds);
	while (left.n > 0) {
		struct view in = view_of(left.p, piece < left.n ? piece : left.n);

		left = view_skip(left, in.n);
		for (int event = USTAR_ENTRY; event != USTAR_MORE;) {
			struct view content = {.n = 0};

			event = ustar_next(&r, &in, &content, &err);
			if (event < 0) {
				check(ustar_reader_end(&r, &err) < 0);
				return 0;
			}
			if (event == USTAR_ENTRY) {
				check(++entries <= bounds.entries);
				check_entry(&r.entry, &bounds);
			}
			if (event == USTAR_DATA)
				bytes += content.n;
			check(bytes <= bounds.bytes);
		}
		check(in.n == 0);
	}
	return 0;
}
