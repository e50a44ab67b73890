/* SPDX-License-Identifier: Apache-2.0 */
/* The text form of a signature, as ssh-keygen -Y writes and reads it; for the CLI and for tests, never on the wire. */
#include "lib/approval/sshsig.h"
#include "lib/base/base64.h"

#include <errno.h>

#define BEGIN "-----BEGIN SSH SIGNATURE-----\n"
#define END   "-----END SSH SIGNATURE-----\n"

enum { LINE = 70, TEXT_MAX = 8192 };

void
sshsig_armour(struct view blob, struct buf *out)
{
	auto_buf struct buf text = {.max = TEXT_MAX};
	struct view rest;

	base64_encode(blob, &text);
	buf_add_str(out, BEGIN);
	for (rest = buf_view(&text); rest.n != 0; rest = view_skip(rest, LINE)) {
		buf_add(out, rest.p, rest.n < LINE ? rest.n : LINE);
		buf_add_byte(out, '\n');
	}
	buf_add_str(out, END);
	if (text.failed)
		out->failed = true;
}

int
sshsig_dearmour(struct view text, struct buf *out, struct err *err)
{
	auto_buf struct buf joined = {.max = TEXT_MAX};
	size_t n;

	if (text.n > TEXT_MAX || !view_starts(text, BEGIN) ||
		text.n < strlen(BEGIN) + strlen(END) ||
		!view_is(view_skip(text, text.n - strlen(END)), END))
		return err_set(err, -EINVAL, "this is no signature file of ssh-keygen -Y sign");
	text = view_of(text.p + strlen(BEGIN), text.n - strlen(BEGIN) - strlen(END));
	for (; text.n != 0; text = view_skip(text, n + 1)) {
		const uint8_t *end = memchr(text.p, '\n', text.n);

		n = end == NULL ? text.n : (size_t)(end - text.p);
		if (end == NULL || n == 0)
			return err_set(err, -EINVAL, "the signature file has a line that is none");
		buf_add(&joined, text.p, n);
	}
	if (buf_check(&joined) < 0 || base64_decode(buf_view(&joined), out) < 0)
		return err_set(err, -EINVAL, "the signature file is not in base 64");
	return 0;
}
