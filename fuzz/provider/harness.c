/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of what is made of a provider's answer. Two bytes of status, then the body. Whatever is kept is canonical, small enough, and never has the
 * secret in it; an answer means something for every status, and nothing but a listed success is one.
 */
#include "broker/answer.h"
#include "broker/classify.h"

#include "lib/canon/read.h"
#include "lib/json/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char secret[] = "s3cr3t-key";

static bool
leaks(void *owner, struct view text)
{
	(void)owner;
	return memmem(text.p, text.n, secret, sizeof(secret) - 1) != NULL;
}

static struct view
v(const char *s)
{
	return view_str(s);
}

static void
keep(struct view body)
{
	const struct answer_field fields[] = {{v("a.b"), v("data.0.id")}, {v("id"), v("id")},
		{v("status"), v("status")}, {v("z"), v("data.1")}, {v("id"), v("other.id")}};
	const struct answer_judge judge = {.leaks = leaks};
	auto_buf struct buf out = {.max = 65536};
	auto_json json_t *root = NULL;
	struct err err = {0};
	bool redacted = false;

	if (answer_parse(body, &root, &err) < 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		(void)answer_same(answer_at(root, fields[i].field), v("\"x\""));
	if (answer_keep(root, fields, ARRAY_LEN(fields), &judge, 4096, &out, &redacted, &err) < 0) {
		must(out.n == 0);
		return;
	}
	must(out.n <= 4096);
	must(canon_check(buf_view(&out), false, &err) == 0);
	must(memmem(out.p, out.n, secret, sizeof(secret) - 1) == NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const struct operation op = {.success = {.code = {200, 201}, .n = 2},
		.pending = {.code = {202}, .n = 1},
		.provider = {.capability = {.key = true, .definite = {.code = {400}, .n = 1}}}};
	unsigned status;

	if (n < 2)
		return 0;
	status = (unsigned)data[0] << 8 | data[1];
	must((classify(&op, status, true).class == CLASS_SUCCEEDED) ==
		(status == 200 || status == 201));
	must(classify(&op, status, false).class == CLASS_UNKNOWN);
	keep(view_of(data + 2, n - 2));
	return 0;
}
