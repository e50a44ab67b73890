/* SPDX-License-Identifier: Apache-2.0 */
/* See sequence.h. */
#include "lib/canon/sequence.h"

#include <errno.h>

int
canon_sequence_next(
	struct view *rest, const char *what, size_t max, struct view *ret, struct err *err)
{
	size_t n;

	if (rest->n == 0)
		return 0;
	if (rest->n < 4)
		return err_set(err, -EINVAL, "the %s is cut off", what);
	n = (size_t)rest->p[0] << 24 | (size_t)rest->p[1] << 16 | (size_t)rest->p[2] << 8 |
	    rest->p[3];
	if (n == 0 || n > max || n > rest->n - 4)
		return err_set(err, -EINVAL, "the %s is cut off or a document too large", what);
	*ret = view_of(rest->p + 4, n);
	*rest = view_skip(*rest, 4 + n);
	return 1;
}

void
canon_sequence_add(struct buf *b, struct view document)
{
	uint8_t n[4] = {(uint8_t)(document.n >> 24), (uint8_t)(document.n >> 16),
		(uint8_t)(document.n >> 8), (uint8_t)document.n};

	buf_add(b, n, sizeof(n));
	buf_add_view(b, document);
}
