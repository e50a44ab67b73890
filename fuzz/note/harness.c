/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of notes, checkpoints and verifier keys: whatever is taken is written again as the same bytes, a note apart from signatures that are not of
 * an Ed25519 key.
 */
#include "lib/base/base64.h"
#include "lib/tlog/note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
same_checkpoint(struct view text)
{
	auto_buf struct buf out = {.max = 2 * NOTE_MAX};
	struct checkpoint c;
	struct err err;

	if (checkpoint_read(text, &c, &err) < 0)
		return;
	checkpoint_write(&c, &out);
	must(view_eq(buf_view(&out), text));
}

static void
same_note(struct view bytes)
{
	auto_buf struct buf out = {.max = 2 * NOTE_MAX};
	struct note note;
	struct err err;
	bool ours = true;

	if (note_read(bytes, &note, &err) < 0)
		return;
	must(note.n > 0 && note.n <= NOTE_SIGNATURES);
	same_checkpoint(note.text);
	buf_add_view(&out, note.text);
	buf_add_byte(&out, '\n');
	for (size_t i = 0; i < note.n; i++) {
		struct note_key k = {.hash = note.signature[i].hash};

		ours = ours && note.signature[i].n == ED25519_SIGNATURE;
		must(note_name_ok(note.signature[i].name));
		memcpy(k.name, note.signature[i].name.p, note.signature[i].name.n);
		note_line_add(&out, &k, note.signature[i].bytes);
		must(!ours || note_find(&note, &k) != NULL);
	}
	must(!ours || view_eq(buf_view(&out), bytes));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct view bytes = view_of(data, n);
	char text[NOTE_KEY_TEXT];
	struct note_key k;
	struct err err;

	same_note(bytes);
	same_checkpoint(bytes);
	if (note_key_read(bytes, &k, &err) == 0) {
		note_key_write(&k, text);
		must(view_is(bytes, text));
	}
	return 0;
}
