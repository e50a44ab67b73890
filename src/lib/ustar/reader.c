/* SPDX-License-Identifier: Apache-2.0 */
/* Archives, read strictly; see ustar.h. */
#include "lib/ustar/format.h"

#include <errno.h>
#include <string.h>

void
ustar_reader_init(struct ustar_reader *r, const struct ustar_bounds *bounds)
{
	memset(r, 0, sizeof(*r));
	r->bounds = *bounds;
}

static int
broken(struct err *err, const char *what)
{
	return err_set(err, -EBADMSG, "not a strict ustar archive: %s", what);
}

/* Octal digits, then NULs or blanks, at least one; at least one digit. */
static bool
get_octal(const char *p, size_t n, uint64_t *ret)
{
	uint64_t v = 0;
	size_t i = 0;

	for (; i < n && p[i] >= '0' && p[i] <= '7'; i++)
		v = v << 3 | (uint64_t)(p[i] - '0');
	if (i == 0 || i == n)
		return false;
	for (; i < n; i++)
		if (p[i] != '\0' && p[i] != ' ')
			return false;
	*ret = v;
	return true;
}

/* Text up to a NUL or the end of the field; behind the NUL only NULs. */
static bool
get_text(const char *p, size_t n, struct view *ret)
{
	size_t used = strnlen(p, n);

	for (size_t i = used; i < n; i++)
		if (p[i] != '\0')
			return false;
	*ret = view_of(p, used);
	return true;
}

static int
get_path(const struct ustar_block *b, struct ustar_entry *e, struct err *err)
{
	struct view name, prefix, path;
	char joined[USTAR_PATH_MAX + 2];
	size_t n = 0;

	if (!get_text(b->name, sizeof(b->name), &name) ||
		!get_text(b->prefix, sizeof(b->prefix), &prefix))
		return broken(err, "bytes behind a name");
	if (prefix.n > 0) {
		memcpy(joined, prefix.p, prefix.n);
		n = prefix.n;
		joined[n++] = '/';
	}
	memcpy(joined + n, name.p, name.n);
	n += name.n;
	path = view_of(joined, n);
	if (e->kind == USTAR_DIRECTORY && (view_is(path, ".") || view_is(path, "./")))
		return 0; /* the top */
	if (e->kind == USTAR_DIRECTORY && path.n > 1 && path.p[path.n - 1] == '/')
		path.n--;
	if (view_starts(path, "./"))
		path = view_skip(path, 2);
	if (!ustar_path_ok(path))
		return broken(err, "a path that is absolute, empty, or has empty, . or .. parts");
	memcpy(e->path, path.p, path.n);
	return 0;
}

static int
get_kind(const struct ustar_block *b, struct ustar_entry *e, struct err *err)
{
	if (b->type == '0' || b->type == '\0')
		e->kind = USTAR_REGULAR;
	else if (b->type == '5')
		e->kind = USTAR_DIRECTORY;
	else if (b->type == '2')
		e->kind = USTAR_SYMLINK;
	else if (b->type == '1')
		return broken(err, "a hard link (use tar --hard-dereference)");
	else if (b->type == 'x' || b->type == 'g')
		return broken(err, "an extended header (use tar --format=ustar)");
	else
		return broken(
			err, "a device, FIFO or other special entry (leave it out: tar --exclude)");
	return 0;
}

/* The link field: a target for symlinks, empty for all others. */
static int
get_target(const struct ustar_reader *r, const struct ustar_block *b, struct ustar_entry *e,
	struct err *err)
{
	struct view target;

	if (!get_text(b->link, sizeof(b->link), &target))
		return broken(err, "bytes behind a link's target");
	if ((target.n > 0) != (e->kind == USTAR_SYMLINK))
		return broken(err, "a link's target where none belongs, or none where one belongs");
	if (target.n > 0 && !r->bounds.links_out && !ustar_link_stays(view_str(e->path), target))
		return broken(err, "a symlink that leaves the tree");
	memcpy(e->target, target.p, target.n);
	return 0;
}

static int
get_entry(struct ustar_reader *r, struct ustar_entry *e, struct err *err)
{
	struct ustar_block b;
	uint64_t checksum, mode, uid, gid;
	int code;

	memcpy(&b, r->block, sizeof(b));
	if (memcmp(b.magic, "ustar", 6) != 0 || memcmp(b.version, "00", 2) != 0)
		return broken(
			err, "a header of another format or compressed (use tar --format=ustar)");
	if (!get_octal(b.checksum, sizeof(b.checksum), &checksum) ||
		checksum != ustar_checksum(r->block))
		return broken(err, "a wrong checksum");
	if (!get_octal(b.mode, sizeof(b.mode), &mode) || mode > 07777 ||
		!get_octal(b.uid, sizeof(b.uid), &uid) || !get_octal(b.gid, sizeof(b.gid), &gid) ||
		!get_octal(b.size, sizeof(b.size), &e->size) ||
		!get_octal(b.mtime, sizeof(b.mtime), &e->mtime))
		return broken(err, "a number that is not octal or too large");
	e->mode = (uint32_t)mode;
	code = get_kind(&b, e, err);
	if (code == 0)
		code = get_path(&b, e, err);
	if (code == 0)
		code = get_target(r, &b, e, err);
	if (code < 0)
		return code;
	if (e->kind != USTAR_REGULAR && e->size != 0)
		return broken(err, "content where none belongs");
	if (r->entries >= r->bounds.entries)
		return err_set(err, -E2BIG, "more than %u entries", r->bounds.entries);
	if (e->size > r->bounds.bytes - r->bytes)
		return err_set(
			err, -E2BIG, "more than %llu bytes", (unsigned long long)r->bounds.bytes);
	return 0;
}

static bool
all_zero(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if (v.p[i] != 0)
			return false;
	return true;
}

static struct view
cut(struct view *in, uint64_t n)
{
	struct view v = view_of(in->p, n < in->n ? (size_t)n : in->n);

	*in = view_skip(*in, v.n);
	return v;
}

/* A complete block in r->block. */
static int
take_block(struct ustar_reader *r, struct err *err)
{
	struct ustar_entry e = {.kind = USTAR_REGULAR};
	int code;

	r->have = 0;
	if (all_zero(view_of(r->block, USTAR_BLOCK))) {
		r->zeros++;
		return r->zeros == 2 ? USTAR_END : USTAR_MORE;
	}
	if (r->zeros > 0)
		return broken(err, "an entry behind a zero block");
	code = get_entry(r, &e, err);
	if (code < 0)
		return code;
	r->entry = e;
	r->entries++;
	r->bytes += e.size;
	r->in_file = e.kind == USTAR_REGULAR;
	r->left = e.size;
	r->pad = ustar_padding(e.size);
	return USTAR_ENTRY;
}

static int
next(struct ustar_reader *r, struct view *in, struct view *ret_data, struct err *err)
{
	if (r->in_file && r->left == 0) {
		r->in_file = false;
		return USTAR_CLOSE;
	}
	while (in->n > 0) {
		struct view v;
		int code;

		if (r->left > 0) {
			*ret_data = cut(in, r->left);
			r->left -= ret_data->n;
			return USTAR_DATA;
		}
		if (r->pad > 0 || r->zeros >= 2) {
			v = cut(in, r->pad > 0 ? r->pad : in->n);
			if (!all_zero(v))
				return broken(err, "padding that is not zero");
			if (r->pad > 0)
				r->pad -= (uint32_t)v.n;
			continue;
		}
		v = cut(in, USTAR_BLOCK - r->have);
		memcpy(r->block + r->have, v.p, v.n);
		r->have += v.n;
		if (r->have < USTAR_BLOCK)
			break;
		code = take_block(r, err);
		if (code != USTAR_MORE)
			return code;
	}
	return USTAR_MORE;
}

int
ustar_next(struct ustar_reader *r, struct view *in, struct view *ret_data, struct err *err)
{
	int code;

	if (r->failed)
		return broken(err, "it was refused before");
	code = next(r, in, ret_data, err);
	if (code < 0)
		r->failed = true;
	return code;
}

int
ustar_reader_end(const struct ustar_reader *r, struct err *err)
{
	if (r->failed || r->zeros < 2)
		return broken(err, "it ends too early");
	return 0;
}
