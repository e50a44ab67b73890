/* SPDX-License-Identifier: Apache-2.0 */
/* Policies of files and of the daemon; see policy.h. Those of the daemon are read as canonical documents and must have the digest that it says. */
#include "cli/policy.h"

#include "cli/answer.h"
#include "cli/check.h"
#include "cli/request.h"
#include "lib/base/hex.h"

#include <errno.h>

enum { TARGET_BYTES = 4096 };

void
policy_held_done(struct policy_held *h)
{
	policies_done(&h->set);
	json_decref(h->row);
	h->row = NULL;
}

bool
policy_is_file(const char *text)
{
	static const char suffix[] = ".yaml";
	size_t n = strlen(text), m = sizeof(suffix) - 1;

	return strchr(text, '/') != NULL || (n > m && strcmp(text + n - m, suffix) == 0);
}

int
policy_of_file(const char *file, struct policy_held *ret, struct err *err)
{
	struct policy_held h = {0};
	unsigned faults = 0;
	int r = check_policies(file, stderr, &h.set, &faults, err);

	if (r < 0)
		return r;
	if (faults > 0)
		return err_set(err, -EINVAL, "%.120s is no policy", file);
	if (h.set.n != 1) {
		(void)err_set(err, -EINVAL, "%.120s has %zu policies; name the file of one", file,
			h.set.n);
		policies_done(&h.set);
		return err->code;
	}
	h.p = &h.set.row[0];
	*ret = h;
	return 0;
}

/* Reads the document again as its canonical bytes. */
static int
read_document(const json_t *row, struct policy_held *h, struct err *err)
{
	char digest[7 + SHA256_TEXT] = "sha256:";
	char *text auto_free = json_dumps(answer_at(row, "policy"), JSON_COMPACT | JSON_SORT_KEYS);
	size_t n = text == NULL ? 0 : strlen(text);
	int r;

	h->set.bytes = malloc(n + 1);
	h->set.row = calloc(1, sizeof(*h->set.row));
	if (n == 0 || h->set.bytes == NULL || h->set.row == NULL)
		return err_set(err, -EBADMSG, "the daemon's answer has no policy");
	memcpy(h->set.bytes, text, n);
	r = policy_read(view_of(h->set.bytes, n), &h->set.row[0], err);
	if (r < 0)
		return err_context(err, "the policy of the daemon cannot be read");
	h->set.n = 1;
	h->p = &h->set.row[0];
	hex_encode(h->p->digest, SHA256_BYTES, digest + 7);
	if (!view_is(answer_text(row, "digest"), digest))
		return err_set(err, -EBADMSG,
			"the policy of the daemon is not the one that its digest names; is this "
			"demilune of the same version?");
	return 0;
}

static int
policy_get(struct cli *cli, struct view target, struct policy_held *ret, struct err *err)
{
	auto_policy struct policy_held h = {0};
	int r = client_get(&cli->client, target, &h.row, err);

	if (r == 0)
		r = read_document(h.row, &h, err);
	if (r < 0)
		return r;
	*ret = h;
	h = (struct policy_held){0};
	return 0;
}

int
policy_of_name(struct cli *cli, const char *name, struct policy_held *ret, struct err *err)
{
	auto_buf struct buf target;

	buf_init(&target, TARGET_BYTES);
	buf_add_str(&target, "/v1/policies/");
	target_add(&target, name);
	return policy_get(cli, buf_view(&target), ret, err);
}

int
policy_of_task(struct cli *cli, const char *task, struct policy_held *ret, struct err *err)
{
	char id[ID_TEXT], target[160];
	int r = request_task_id(cli, task, id, err);

	if (r < 0)
		return r;
	(void)snprintf(target, sizeof(target), "/v1/tasks/%s/policy", id);
	return policy_get(cli, view_str(target), ret, err);
}
