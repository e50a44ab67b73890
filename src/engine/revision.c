/* SPDX-License-Identifier: Apache-2.0 */
/* Revisions of policies; see revision.h. */
#include "engine/revision.h"

#include "lib/base/clock.h"

#include <errno.h>
#include <unistd.h>

/* One that the host does not have any more. */
struct revision {
	struct link link;
	struct buf document;
	struct policy policy; /* views into it */
};

int
revisions_open(struct engine *e, int fd, struct err *err)
{
	int r = policies_load(fd, &e->policies, err);

	(void)close(fd); /* all of it is in memory, or the process ends */
	return r;
}

static void
revision_free(struct revision *v)
{
	list_remove(&v->link);
	buf_done(&v->document);
	free(v);
}

static void
revision_cleanup(struct revision **v)
{
	if (*v != NULL)
		revision_free(*v);
}

void
revisions_done(struct engine *e)
{
	list_each (v, &e->revisions, struct revision, link)
		revision_free(v);
	policies_done(&e->policies);
}

bool
policy_is_for(const struct policy *p, const char *tenant)
{
	if (p->ntenants == 0)
		return true;
	for (size_t i = 0; i < p->ntenants; i++)
		if (view_is(p->tenant[i], tenant))
			return true;
	return false;
}

int
revision_now(struct engine *e, const char *tenant, const char *name, const struct policy **ret,
	struct err *err)
{
	const struct policy *p = policies_find(&e->policies, view_str(name));

	/* Whether there is one for others is none of the caller's business. */
	if (p == NULL || !policy_is_for(p, tenant))
		return REFUSE(err, NOT_FOUND,
			"no such policy; `demilune policy show` (GET /v1/policies) has those that "
			"may be used");
	*ret = p;
	return 0;
}

int
policy_choose(struct engine *e, const char *tenant, struct view asked, char ret[static 64],
	struct err *err)
{
	const struct policy *p;
	char name[64] = "";

	if (asked.n == 0)
		asked = view_str(e->settings.default_policy);
	if (asked.n != 0 && !view_is(asked, "none")) {
		if (asked.n > POLICY_NAME_MAX || view_has(asked, '\0'))
			return REFUSE(err, BAD_REQUEST, "policy: the name of one");
		memcpy(name, asked.p, asked.n);
		if (revision_now(e, tenant, name, &p, err) < 0)
			return err->code;
	}
	memcpy(ret, name, sizeof(name));
	return 0;
}

/* ---- by digest ---- */

static struct revision *
revision_read(struct view document, struct err *err)
{
	__attribute__((cleanup(revision_cleanup))) struct revision *v = calloc(1, sizeof(*v));

	if (v == NULL) {
		(void)err_set(err, -ENOMEM, "no memory for a policy");
		return NULL;
	}
	list_init(&v->link);
	buf_init(&v->document, POLICY_BYTES_MAX);
	buf_add_view(&v->document, document);
	if (buf_check(&v->document) < 0) {
		(void)err_set(err, -ENOMEM, "no memory for a policy");
		return NULL;
	}
	return policy_read(buf_view(&v->document), &v->policy, err) < 0 ? NULL : take_ptr(v);
}

static int
revision_load(struct engine *e, const uint8_t digest[static 32], const struct policy **ret,
	struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_POLICY_GET);
	struct revision *v;
	int r;

	arg_digest(&q, digest);
	r = query_one(&q, err);
	if (r < 0)
		return r;
	v = revision_read(col_view(&q), err);
	if (v == NULL)
		return err->code;
	if (memcmp(v->policy.digest, digest, 32) != 0) {
		revision_free(v);
		return err_set(err, -EUCLEAN, "a policy in the store is not what its digest says");
	}
	list_append(&e->revisions, &v->link);
	*ret = &v->policy;
	return 0;
}

int
revision_find(struct engine *e, const uint8_t digest[static 32], const struct policy **ret,
	struct err *err)
{
	for (size_t i = 0; i < e->policies.n; i++)
		if (memcmp(e->policies.row[i].digest, digest, 32) == 0) {
			*ret = &e->policies.row[i];
			return 0;
		}
	list_each (v, &e->revisions, struct revision, link)
		if (memcmp(v->policy.digest, digest, 32) == 0) {
			*ret = &v->policy;
			return 0;
		}
	return revision_load(e, digest, ret, err);
}

int
revision_keep(struct engine *e, const struct policy *p, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_POLICY_PUT);

	arg_digest(&q, p->digest);
	arg_view(&q, p->name);
	arg_blob(&q, p->document);
	arg_u64(&q, clock_real_ms());
	return query_run(&q, err);
}
