/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of an audit export; see export.h. */
#include "cli/export.h"

#include "lib/base/hex.h"
#include "lib/base/num.h"

#include <errno.h>
#include <inttypes.h>

/* Takes a literal from the front. */
static bool
take(struct view *v, const char *literal)
{
	if (!view_starts(*v, literal))
		return false;
	*v = view_skip(*v, strlen(literal));
	return true;
}

static bool
take_digest(struct view *v, uint8_t ret[static SHA256_BYTES])
{
	const size_t digits = SHA256_TEXT - 1;

	if (v->n < digits || hex_decode(view_of(v->p, digits), ret, SHA256_BYTES) < 0)
		return false;
	*v = view_skip(*v, digits);
	return true;
}

static bool
take_number(struct view *v, uint64_t *ret)
{
	size_t n = 0;

	while (n < v->n && v->p[n] >= '0' && v->p[n] <= '9')
		n++;
	if (num_u64(view_of(v->p, n), INT64_MAX, ret) < 0)
		return false;
	*v = view_skip(*v, n);
	return true;
}

/* ,"proof":"..." where it stands; false: it stands there and is none. */
static bool
take_proof(struct view *v, struct view *ret)
{
	size_t n = 0;

	if (!take(v, ",\"proof\":\""))
		return true;
	while (n < v->n &&
		((v->p[n] >= '0' && v->p[n] <= '9') || (v->p[n] >= 'a' && v->p[n] <= 'f')))
		n++;
	*ret = view_of(v->p, n);
	*v = view_skip(*v, n);
	return n % (SHA256_TEXT - 1) == 0 && take(v, "\"");
}

int
export_read(struct view line, struct export_line *ret, struct err *err)
{
	struct export_line l = {0};
	struct view v = line;

	if (!take(&v, "{\"number\":") || !take_number(&v, &l.number) ||
		!take(&v, ",\"previous\":\"sha256:") || !take_digest(&v, l.previous) ||
		!take(&v, "\",\"digest\":\"sha256:") || !take_digest(&v, l.digest) ||
		!take(&v, "\",\"leaf\":") || !take_number(&v, &l.leaf) ||
		!take_proof(&v, &l.proof) || !take(&v, ",\"record\":") || v.n < 3 ||
		v.p[0] != '{' || v.p[v.n - 2] != '}' || v.p[v.n - 1] != '}')
		return err_set(err, -EBADMSG, "this is not a line of an audit export");
	l.record = view_of(v.p, v.n - 1);
	*ret = l;
	return 0;
}

static void
add_hex(struct buf *out, struct view bytes)
{
	char text[SHA256_TEXT];

	for (; bytes.n >= SHA256_BYTES; bytes = view_skip(bytes, SHA256_BYTES)) {
		hex_encode(bytes.p, SHA256_BYTES, text);
		buf_add_str(out, text);
	}
}

void
export_write(const struct export_line *l, struct view proof, struct buf *out)
{
	buf_addf(out, "{\"number\":%" PRIu64 ",\"previous\":\"sha256:", l->number);
	add_hex(out, view_of(l->previous, SHA256_BYTES));
	buf_add_str(out, "\",\"digest\":\"sha256:");
	add_hex(out, view_of(l->digest, SHA256_BYTES));
	buf_addf(out, "\",\"leaf\":%" PRIu64 ",\"proof\":\"", l->leaf);
	add_hex(out, proof);
	buf_add_str(out, "\",\"record\":");
	buf_add_view(out, l->record);
	buf_add_str(out, "}\n");
}
