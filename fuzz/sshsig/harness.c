/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of signatures: the first byte chooses a raw blob, a public key, or the armoured text. What is read as a blob is verified (and must fail,
 * unless it is one of the seeds as it stands); what is read as a key reads the same from its own bytes; armour goes round.
 */
#include "lib/approval/sshsig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
try_blob(struct view in)
{
	char text[SSHKEY_FINGERPRINT];
	struct sshsig s;
	struct err err;

	if (sshsig_read(in, &s, &err) < 0)
		return;
	must(s.key.blob.n != 0 && s.name_space.n != 0);
	sshkey_fingerprint(s.key.blob, text);
	must(strlen(text) == SSHKEY_FINGERPRINT - 2);
	for (int verified = 0; verified < 2; verified++)
		if (sshsig_verify(&s, view_str("message"), SSHSIG_NAMESPACE, verified == 1, &err) ==
			0)
			must(view_is(s.name_space, SSHSIG_NAMESPACE));
	must(sshsig_verify(&s, view_str("another message"), SSHSIG_NAMESPACE, false, &err) < 0);
}

static void
try_key(struct view in)
{
	struct sshkey key, again;
	struct err err;

	if (sshkey_read(in, &key, &err) < 0)
		return;
	must(view_eq(key.blob, in) && sshkey_read(key.blob, &again, &err) == 0 &&
		again.kind == key.kind);
}

static void
try_text(struct view in)
{
	auto_buf struct buf blob = {.max = 8192}, text = {.max = 16384}, again = {.max = 8192};
	struct err err;

	if (sshsig_dearmour(in, &blob, &err) < 0)
		return;
	sshsig_armour(buf_view(&blob), &text);
	if (buf_check(&text) == 0 && text.n <= 8192)
		must(sshsig_dearmour(buf_view(&text), &again, &err) == 0 &&
			view_eq(buf_view(&blob), buf_view(&again)));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	if (n == 0)
		return 0;
	struct view in = view_of(data + 1, n - 1);

	if (data[0] % 3 == 0)
		try_blob(in);
	else if (data[0] % 3 == 1)
		try_key(in);
	else
		try_text(in);
	return 0;
}
