/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mkfs.erofs 1.5 sorts directory entries itself; with -T, -U and no extended attributes
 * (-x-1, which drops file capabilities too) its output depends on the tree alone. lz4hc
 * makes the Python image 57 % of its plain size and does not change a start of Python.
 */
#include "template/image.h"
#include "template/child.h"

#include "lib/base/fd.h"
#include "lib/base/hex.h"

#include <errno.h>
#include <fcntl.h>

int
image_make(const char *tree, const char *image, struct err *err)
{
	const char *const argv[] = {"/usr/bin/mkfs.erofs", "--quiet", "-d1", "-zlz4hc", "-x-1",
		"-T" IMAGE_EPOCH, "-U00000000-0000-4000-8000-000000000000", image, tree, NULL};
	const char *const envp[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", NULL};
	const struct child c = {.argv = argv, .envp = envp};

	return child_run(&c, err);
}

int
image_digest(int dir, const char *name, char ret_digest[SHA256_TEXT], uint64_t *ret_bytes,
	struct err *err)
{
	static const size_t size = 1 << 20;
	uint8_t *chunk auto_free = malloc(size);
	uint8_t digest[SHA256_BYTES];
	struct sha256 h;
	uint64_t total = 0;
	size_t n;

	int fd auto_fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	if (chunk == NULL || fd < 0)
		return err_errno(err, "read %s", name);
	sha256_init(&h);
	do {
		int r = fd_read_upto(fd, chunk, size, &n, err);

		if (r < 0)
			return r;
		sha256_add(&h, chunk, n);
		total += n;
	} while (n == size);
	sha256_end(&h, digest);
	hex_encode(digest, sizeof(digest), ret_digest);
	*ret_bytes = total;
	return 0;
}
