/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees as POSIX ustar, strictly: regular files, directories and symbolic links, nothing else. The agent
 * makes and reads them inside the sandbox, the command line and the template importer on the host, so an
 * archive is hostile on either side.
 *
 * A path is relative, has no empty, "." or ".." component and no NUL, and fits the format (256 bytes). A
 * leading "./" is what every tar writes for a tree: it is taken as the same path without it, and "./"
 * itself as the top. A symlink's target is data and never followed; one that leaves the tree (absolute, or
 * with more ".." than its depth) is refused unless the caller allows it. Hard links, devices, FIFOs,
 * extended headers and GNU forms are refused, as are wrong checksums, numbers that are not octal, an
 * archive without its two zero blocks, and bytes that are not zero behind them.
 *
 * Works on memory only: no descriptor, no allocation.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/view.h"

enum {
	USTAR_BLOCK = 512,
	USTAR_PATH_MAX = 256,
	USTAR_TARGET_MAX = 100,
};
#define USTAR_SIZE_MAX 077777777777ull /* 8 GiB - 1 */

enum ustar_kind {
	USTAR_REGULAR,
	USTAR_DIRECTORY,
	USTAR_SYMLINK,
};

struct ustar_entry {
	enum ustar_kind kind;
	uint32_t mode; /* 0..07777 */
	uint64_t size; /* 0 but for regular files */
	uint64_t mtime;
	char path[USTAR_PATH_MAX + 1]; /* no slash at the end; "" is the top itself, a directory */
	char target[USTAR_TARGET_MAX + 1]; /* "" but for symlinks */
};

struct ustar_bounds {
	uint32_t entries; /* at most */
	uint64_t bytes;   /* of file content, at most */
	bool links_out;   /* symlinks that leave the tree are allowed */
};

enum ustar_event {
	USTAR_MORE,  /* the input is used up: feed again */
	USTAR_ENTRY, /* r->entry is the next one */
	USTAR_DATA,  /* bytes of the current regular file */
	USTAR_CLOSE, /* the current regular file is complete */
	USTAR_END,   /* the archive is complete; what follows may only be zero */
};

struct ustar_reader {
	struct ustar_bounds bounds;
	struct ustar_entry entry;
	uint8_t block[USTAR_BLOCK];
	size_t have;    /* bytes of block */
	uint64_t left;  /* bytes of content still to come */
	uint32_t pad;   /* bytes of padding still to come */
	uint32_t zeros; /* zero blocks seen */
	uint32_t entries;
	uint64_t bytes;
	bool in_file, failed;
};

void ustar_reader_init(struct ustar_reader *r, const struct ustar_bounds *bounds);

/*
 * Takes bytes from the front of *in until there is something to tell: enum ustar_event, *ret_data for
 * USTAR_DATA (borrowed from *in), or negative: -EBADMSG for a broken archive, -E2BIG above a bound. After
 * an error only errors follow.
 */
int ustar_next(
	struct ustar_reader *r, struct view *in, struct view *ret_data, struct err *err) MUST_CHECK;

/* 0 when the archive was complete, else -EBADMSG: said when there is no more input. */
int ustar_reader_end(const struct ustar_reader *r, struct err *err) MUST_CHECK;

/* -ENAMETOOLONG or -EFBIG when the entry has no ustar form, -EINVAL when it breaks the rules above. */
int ustar_put(const struct ustar_entry *e, uint8_t ret_block[static USTAR_BLOCK],
	struct err *err) MUST_CHECK;

/* Zero bytes that follow content of this size. */
static inline uint32_t
ustar_padding(uint64_t size)
{
	return (uint32_t)(-size & (USTAR_BLOCK - 1));
}

/* Whether a path is one that this format carries: see the top. "" is not. */
bool ustar_path_ok(struct view path);

/* Whether a symlink at `path` with this target stays in the tree, by its text. */
bool ustar_link_stays(struct view path, struct view target);
