/* SPDX-License-Identifier: Apache-2.0 */
/* The table of policies; see revisions.h. Called by compile.c, catalogue.c and the sandboxes. */
#include "supervisor/revisions.h"

#include "lib/base/fd.h"
#include "lib/egress/policy.h"
#include "supervisor/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

/* Ascending, zeros behind the last, none of those that every gateway has. */
static int
ports_check(const uint16_t ports[static POLICY_PORTS_MAX])
{
	for (size_t i = 0; i < POLICY_PORTS_MAX; i++) {
		if (ports[i] == GATEWAY_DNS_PORT || ports[i] == GATEWAY_PROXY_PORT)
			return -EINVAL;
		if (i > 0 && ports[i] != 0 && ports[i] <= ports[i - 1])
			return -EINVAL;
		if (i > 0 && ports[i] != 0 && ports[i - 1] == 0)
			return -EINVAL;
	}
	return 0;
}

/* A file name without a part that leads elsewhere. */
static bool
name_ok(const char *name)
{
	size_t n = strspn(
		name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.");

	return n > 0 && name[n] == '\0' && name[0] != '.';
}

struct revision *
revision_new(const struct msg_config_policy *m, int document, struct err *err)
{
	auto_fd int fd = document;
	struct revision *r;

	if (!name_ok(m->name) || ports_check(m->ports) < 0) {
		(void)err_set(err, -EPROTO, "a compiled policy has a name or ports that none has");
		return NULL;
	}
	for (size_t i = 0; i < ARRAY_LEN(m->roots); i++)
		if (m->roots[i][0] != '\0' && !name_ok(m->roots[i])) {
			(void)err_set(err, -EPROTO,
				"policy %s names roots that are no file of a "
				"directory",
				m->name);
			return NULL;
		}
	r = calloc(1, sizeof(*r));
	if (r == NULL) {
		(void)err_set(err, -ENOMEM, "no memory for a policy");
		return NULL;
	}
	*r = (struct revision){.refs = 1, .document = take_fd(&fd), .is = *m};
	return r;
}

struct revision *
revision_ref(struct revision *r)
{
	r->refs++;
	return r;
}

void
revision_unref(struct revision **r)
{
	struct revision *was = *r;

	*r = NULL;
	if (was == NULL || --was->refs > 0)
		return;
	(void)close(was->document); /* only read */
	free(was);
}

int
revision_open(const struct revision *r, struct err *err)
{
	char path[32];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", r->document);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? err_errno(err, "the document of policy %s", r->is.name) : fd;
}

int
revisions_add(struct revisions *p, struct revision *r, struct err *err)
{
	struct revision **row;

	for (size_t i = 0; i < p->n; i++)
		if (strcmp(p->row[i]->is.name, r->is.name) == 0 ||
			memcmp(p->row[i]->is.policy, r->is.policy, sizeof(r->is.policy)) == 0)
			return err_set(err, -EPROTO, "policy %s was compiled twice", r->is.name);
	if (p->n >= LIMIT_POLICIES)
		return err_set(
			err, -EPROTO, "more than %d policies were compiled", (int)LIMIT_POLICIES);
	row = realloc(p->row, (p->n + 1) * sizeof(struct revision *));
	if (row == NULL)
		return err_set(err, -ENOMEM, "no memory for a policy");
	p->row = row;
	p->row[p->n++] = revision_ref(r);
	return 0;
}

struct revision *
revisions_find(const struct revisions *p, const uint8_t digest[static 32])
{
	for (size_t i = 0; i < p->n; i++)
		if (memcmp(p->row[i]->is.policy, digest, 32) == 0)
			return p->row[i];
	return NULL;
}

void
revisions_done(struct revisions *p)
{
	while (p->n > 0)
		revision_unref(&p->row[--p->n]);
	free(take_ptr(p->row));
	fd_close_kept(&p->all);
}
