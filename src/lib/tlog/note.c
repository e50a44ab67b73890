/* SPDX-License-Identifier: Apache-2.0 */
/* See note.h. */
#include "lib/tlog/note.h"

#include "lib/base/base64.h"
#include "lib/base/hex.h"
#include "lib/base/num.h"

#include <errno.h>
#include <inttypes.h>

enum { KIND_ED25519 = 1, HASH_BYTES = 4 };

static const char dash[] = "\xe2\x80\x94 "; /* em dash, blank */

/* ---- keys ---- */

bool
note_name_ok(struct view name)
{
	if (name.n == 0 || name.n >= NOTE_NAME)
		return false;
	for (size_t i = 0; i < name.n; i++)
		if (name.p[i] <= 0x20 || name.p[i] > 0x7e || name.p[i] == '+')
			return false;
	return true;
}

void
note_key_seal(struct note_key *k)
{
	static const uint8_t middle[] = {'\n', KIND_ED25519};
	uint8_t d[SHA256_BYTES];
	struct sha256 h;

	sha256_init(&h);
	sha256_add(&h, k->name, strlen(k->name));
	sha256_add(&h, middle, sizeof(middle));
	sha256_add(&h, k->public, ED25519_BYTES);
	sha256_end(&h, d);
	k->hash = (uint32_t)d[0] << 24 | (uint32_t)d[1] << 16 | (uint32_t)d[2] << 8 | d[3];
}

/* The front up to `end`, which is taken too; false: it is not there. */
static bool
take_ended(struct view *v, uint8_t end, struct view *ret)
{
	const uint8_t *at = v->n == 0 ? NULL : memchr(v->p, end, v->n);

	if (at == NULL)
		return false;
	*ret = view_of(v->p, (size_t)(at - v->p));
	*v = view_skip(*v, ret->n + 1);
	return true;
}

int
note_key_read(struct view text, struct note_key *ret, struct err *err)
{
	auto_buf struct buf b = {.max = 64};
	struct note_key k = {0};
	struct view name, hash, rest = text;
	uint8_t said[HASH_BYTES];

	if (!take_ended(&rest, '+', &name) || !take_ended(&rest, '+', &hash) ||
		!note_name_ok(name) || hex_decode(hash, said, HASH_BYTES) < 0 ||
		base64_decode(rest, &b) < 0 || b.n != 1 + ED25519_BYTES || b.p[0] != KIND_ED25519)
		return err_set(err, -EBADMSG,
			"this is not a verifier key: NAME+8 hex digits+base64 of an Ed25519 key");
	memcpy(k.name, name.p, name.n);
	memcpy(k.public, b.p + 1, ED25519_BYTES);
	note_key_seal(&k);
	if (k.hash != ((uint32_t)said[0] << 24 | (uint32_t)said[1] << 16 | (uint32_t)said[2] << 8 |
			      said[3]))
		return err_set(err, -EBADMSG,
			"the hash in the verifier key is not that of its name and key");
	*ret = k;
	return 0;
}

void
note_key_write(const struct note_key *k, char ret[static NOTE_KEY_TEXT])
{
	auto_buf struct buf b = {.max = 64};
	uint8_t bytes[1 + ED25519_BYTES] = {KIND_ED25519};

	memcpy(bytes + 1, k->public, ED25519_BYTES);
	base64_encode(view_of(bytes, sizeof(bytes)), &b);
	must(buf_check(&b) == 0 && snprintf(ret, NOTE_KEY_TEXT, "%s+%08" PRIx32 "+%.*s", k->name,
					   k->hash, VIEW_ARGS(buf_view(&b))) < NOTE_KEY_TEXT);
}

/* ---- notes ---- */

static bool
read_line(struct view line, struct note_signature *ret)
{
	auto_buf struct buf b = {.max = NOTE_MAX};
	struct note_signature s = {0};
	struct view rest = line;

	if (!view_starts(rest, dash))
		return false;
	rest = view_skip(rest, sizeof(dash) - 1);
	if (!take_ended(&rest, ' ', &s.name) || !note_name_ok(s.name) ||
		base64_decode(rest, &b) < 0 || b.n <= HASH_BYTES)
		return false;
	s.hash = (uint32_t)b.p[0] << 24 | (uint32_t)b.p[1] << 16 | (uint32_t)b.p[2] << 8 | b.p[3];
	s.n = b.n - HASH_BYTES;
	if (s.n == ED25519_SIGNATURE)
		memcpy(s.bytes, b.p + HASH_BYTES, ED25519_SIGNATURE);
	*ret = s;
	return true;
}

/* Where the last blank line begins that has text before it: the text ends with its first newline. */
static bool
split(struct view bytes, struct view *ret_text, struct view *ret_lines)
{
	for (size_t i = bytes.n; i-- > 1;)
		if (bytes.p[i] == '\n' && bytes.p[i - 1] == '\n') {
			*ret_text = view_of(bytes.p, i);
			*ret_lines = view_skip(bytes, i + 1);
			return true;
		}
	return false;
}

int
note_read(struct view bytes, struct note *ret, struct err *err)
{
	struct note n = {0};
	struct view lines, line;

	if (bytes.n > NOTE_MAX)
		return err_set(err, -EBADMSG, "the note is longer than %d bytes", NOTE_MAX);
	if (!view_utf8(bytes) || !split(bytes, &n.text, &lines) || n.text.n < 2)
		return err_set(
			err, -EBADMSG, "this is not a signed note: text, a blank line, signatures");
	for (size_t i = 0; i < bytes.n; i++)
		if (bytes.p[i] < 0x20 && bytes.p[i] != '\n')
			return err_set(err, -EBADMSG, "the note has a control character");
	while (lines.n > 0) {
		if (n.n == NOTE_SIGNATURES)
			return err_set(err, -EBADMSG, "the note has more than %d signatures",
				NOTE_SIGNATURES);
		if (!take_ended(&lines, '\n', &line) || !read_line(line, &n.signature[n.n++]))
			return err_set(err, -EBADMSG, "signature %zu of the note is not one", n.n);
	}
	if (n.n == 0)
		return err_set(err, -EBADMSG, "the note is not signed");
	*ret = n;
	return 0;
}

void
note_line_add(struct buf *out, const struct note_key *k,
	const uint8_t signature[static ED25519_SIGNATURE])
{
	uint8_t bytes[HASH_BYTES + ED25519_SIGNATURE] = {(uint8_t)(k->hash >> 24),
		(uint8_t)(k->hash >> 16), (uint8_t)(k->hash >> 8), (uint8_t)k->hash};

	memcpy(bytes + HASH_BYTES, signature, ED25519_SIGNATURE);
	buf_addf(out, "%s%s ", dash, k->name);
	base64_encode(view_of(bytes, sizeof(bytes)), out);
	buf_add_byte(out, '\n');
}

const struct note_signature *
note_find(const struct note *n, const struct note_key *k)
{
	for (size_t i = 0; i < n->n; i++)
		if (n->signature[i].hash == k->hash && n->signature[i].n == ED25519_SIGNATURE &&
			view_is(n->signature[i].name, k->name))
			return &n->signature[i];
	return NULL;
}

/* ---- checkpoints ---- */

void
checkpoint_write(const struct checkpoint *c, struct buf *out)
{
	buf_add_view(out, c->origin);
	buf_addf(out, "\n%" PRIu64 "\n", c->size);
	base64_encode(view_of(c->root.b, SHA256_BYTES), out);
	buf_add_byte(out, '\n');
}

int
checkpoint_read(struct view text, struct checkpoint *ret, struct err *err)
{
	auto_buf struct buf b = {.max = 64};
	struct checkpoint c = {0};
	struct view size, root, rest = text;

	if (!take_ended(&rest, '\n', &c.origin) || !note_name_ok(c.origin) ||
		!take_ended(&rest, '\n', &size) || num_u64(size, INT64_MAX, &c.size) < 0 ||
		!take_ended(&rest, '\n', &root) || rest.n != 0 || base64_decode(root, &b) < 0 ||
		b.n != SHA256_BYTES)
		return err_set(err, -EBADMSG,
			"this is not a checkpoint: origin, size and root, one on each line");
	memcpy(c.root.b, b.p, SHA256_BYTES);
	*ret = c;
	return 0;
}
