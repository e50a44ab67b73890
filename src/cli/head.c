/* SPDX-License-Identifier: Apache-2.0 */
/* See head.h; `demilune audit key` and `demilune audit checkpoint` too. */
#include "cli/head.h"

#include "cli/answer.h"
#include "lib/base/fd.h"
#include "lib/base/hex.h"
#include "lib/json/fields.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

void
head_init(struct head *h)
{
	*h = (struct head){0};
	buf_init(&h->note, 2 * NOTE_MAX);
}

void
head_done(struct head *h)
{
	buf_done(&h->note);
}

int
head_file(const char *path, struct buf *ret, struct err *err)
{
	int fd auto_fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	uint8_t *room = buf_room(ret, NOTE_MAX + 1);
	size_t n = 0;

	if (fd < 0)
		return err_errno(err, "%.120s", path);
	if (room == NULL)
		return err_set(err, -ENOMEM, "no memory");
	if (fd_read_upto(fd, room, NOTE_MAX + 1, &n, err) < 0)
		return err_context(err, "%.120s", path);
	buf_grew(ret, n);
	return 0;
}

int
head_key(const struct args *a, struct note_key *ret, struct err *err)
{
	const char *text = args_text(a, OPT_KEY);
	auto_buf struct buf file = {.max = 2 * NOTE_MAX};
	struct view v;
	int r;

	if (text == NULL)
		return -ENOENT;
	v = view_str(text);
	if (!view_has(v, '+')) {
		r = head_file(text, &file, err);
		if (r < 0)
			return r;
		v = buf_view(&file);
		if (v.n > 0 && v.p[v.n - 1] == '\n')
			v.n--;
	}
	return note_key_read(v, ret, err);
}

int
head_read(
	struct head *ret, const struct args *a, struct view told, struct view text, struct err *err)
{
	struct checkpoint c;
	struct note note;
	int r = head_key(a, &ret->key, err);

	if (r < 0 && r != -ENOENT)
		return r;
	ret->key_held = r == 0;
	if (!ret->key_held && note_key_read(told, &ret->key, err) < 0)
		return err_context(err, "the key that came with the checkpoint");
	buf_clear(&ret->note);
	buf_add_view(&ret->note, text);
	if (buf_check(&ret->note) < 0)
		return err_set(err, -EBADMSG, "the checkpoint is longer than %d bytes", NOTE_MAX);
	if (note_read(buf_view(&ret->note), &note, err) < 0 ||
		checkpoint_read(note.text, &c, err) < 0)
		return err->code;
	if (!note_signed(&note, &ret->key))
		return err_set(err, -EKEYREJECTED,
			"the checkpoint is not signed by the key %s+%08" PRIx32, ret->key.name,
			ret->key.hash);
	memcpy(ret->origin, c.origin.p, c.origin.n);
	ret->origin[c.origin.n] = '\0';
	ret->size = c.size;
	ret->root = c.root;
	return 0;
}

int
head_fetch(struct cli *cli, struct head *ret, struct err *err)
{
	json_t *answer auto_json = NULL;
	int r = client_get(&cli->client, view_str("/v1/audit/checkpoint?fresh=1"), &answer, err);

	return r < 0 ? r
		     : head_read(ret, &cli->args, answer_text(answer, "audit_key"),
			       answer_text(answer, "note"), err);
}

int
head_hashes(const json_t *list, struct buf *ret, struct err *err)
{
	size_t i;
	json_t *text;

	json_array_foreach(list, i, text)
	{
		uint8_t *room = buf_room(ret, SHA256_BYTES);

		if (room == NULL || !json_is_string(text) ||
			hex_decode(field_view(text), room, SHA256_BYTES) < 0)
			return err_set(err, -EBADMSG, "a proof has something that is no hash");
		buf_grew(ret, SHA256_BYTES);
	}
	return json_is_array(list) ? 0 : err_set(err, -EBADMSG, "there is no proof");
}

static int
prove(struct cli *cli, const struct head *was, const struct head *now, struct err *err)
{
	auto_buf struct buf hashes = {.max = MERKLE_PROOF_MAX * SHA256_BYTES};
	json_t *answer auto_json = NULL;
	char target[128];
	int r;

	(void)snprintf(target, sizeof(target),
		"/v1/audit/consistency?from=%" PRIu64 "&size=%" PRIu64, was->size, now->size);
	r = client_get(&cli->client, view_str(target), &answer, err);
	if (r == 0)
		r = head_hashes(answer_at(answer, "hashes"), &hashes, err);
	if (r < 0)
		return r;
	if (!merkle_consistency_ok(was->size, &was->root, now->size, &now->root, buf_view(&hashes)))
		return err_set(err, -EBADMSG,
			"the log of now does not continue the checkpoint of %" PRIu64
			" records that you hold: records were changed, removed or moved",
			was->size);
	return 0;
}

int
head_continues(struct cli *cli, const struct args *a, const struct head *now, struct err *err)
{
	const char *path = args_text(a, OPT_CHECKPOINT);
	auto_buf struct buf file = {.max = 2 * NOTE_MAX};
	char key[NOTE_KEY_TEXT];
	auto_head struct head was;
	int r;

	if (path == NULL)
		return 0;
	head_init(&was);
	note_key_write(&now->key, key);
	r = head_file(path, &file, err);
	if (r == 0)
		r = head_read(&was, a, view_str(key), buf_view(&file), err);
	if (r < 0)
		return err_context(err, "%.100s", path);
	if (strcmp(was.origin, now->origin) != 0)
		return err_set(err, -EBADMSG,
			"the checkpoint that you hold is of the log %s, this is %s: the host was "
			"restored, or it is another host",
			was.origin, now->origin);
	if (was.size == now->size)
		return merkle_eq(&was.root, &now->root)
			       ? 0
			       : err_set(err, -EBADMSG,
					 "two checkpoints of %" PRIu64 " records have two roots",
					 now->size);
	if (cli != NULL && was.size < now->size)
		return prove(cli, &was, now, err);
	if (cli != NULL)
		return err_set(err, -EBADMSG,
			"the checkpoint that you hold has %" PRIu64 " records, the log now %" PRIu64
			": records were cut off",
			was.size, now->size);
	return err_set(err, -ENOTSUP,
		"the checkpoint that you hold has %" PRIu64 " records, that of the export %" PRIu64
		": they are compared with the daemon (`demilune audit verify TASK --checkpoint "
		"FILE`)",
		was.size, now->size);
}

int
verb_audit_key(struct cli *cli, struct err *err)
{
	char text[NOTE_KEY_TEXT];
	auto_head struct head h;
	int r;

	head_init(&h);
	r = head_fetch(cli, &h, err);
	if (r < 0)
		return r;
	note_key_write(&h.key, text);
	(void)puts(text);
	return answer_done(err);
}

int
verb_audit_checkpoint(struct cli *cli, struct err *err)
{
	auto_head struct head h;
	int r;

	head_init(&h);
	r = head_fetch(cli, &h, err);
	if (r == 0)
		r = head_continues(cli, &cli->args, &h, err);
	if (r < 0)
		return r;
	(void)fwrite(h.note.p, 1, h.note.n, stdout);
	return answer_done(err);
}
