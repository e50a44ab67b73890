/* SPDX-License-Identifier: Apache-2.0 */
/* Who signs, and signing; see signer.h. */
#include "cli/signer.h"

#include "cli/agent.h"
#include "cli/trust.h"
#include "lib/base/base64.h"

#include <errno.h>
#include <stdio.h>

/* What the person asked for and what there is to choose from. */
struct choice {
	const char *name, *key_file;
	bool has_trust;
	struct trust trust;
	struct buf key; /* of --key */
	struct agent_key agent[AGENT_KEYS_MAX];
	size_t n;
	size_t usable; /* keys of a kind that may sign */
};

static void
choice_done(struct choice *c)
{
	if (c->has_trust)
		trust_done(&c->trust);
	buf_done(&c->key);
}
#define auto_choice __attribute__((cleanup(choice_done)))

static int
read_wishes(const struct args *a, struct choice *c, struct err *err)
{
	auto_buf struct buf room = {0};
	struct key_text text;
	int r = 0;

	c->name = args_text(a, OPT_NAME);
	c->key_file = args_text(a, OPT_KEY);
	buf_init(&c->key, SSHKEY_BYTES_MAX);
	if (c->name != NULL && !approver_name_ok(view_str(c->name)))
		return err_set(err, -EINVAL, "--name: the name of an approver begins with a-z");
	if (c->key_file != NULL)
		r = trust_key(c->key_file, &room, &text, &c->key, err);
	if (r < 0 || c->name != NULL)
		return r;
	if (trust_open(args_text(a, OPT_TRUST), false, &c->trust, err) < 0) {
		/* A file that is there and has a fault is to be mended: the broker takes it no more than we do. */
		return err->code == -ENOENT || err->code == -EACCES
			       ? err_context(err, "who signs is not known here, say --name NAME")
			       : err->code;
	}
	c->has_trust = true;
	return 0;
}

/* The name of a key that may be chosen; empty: it may not. */
static struct view
name_of(struct choice *c, const struct agent_key *k)
{
	const struct view nobody = view_of(NULL, 0);
	const struct approver *a;
	struct sshkey key;
	struct err err;

	if (sshkey_read(k->blob, &key, &err) < 0)
		return nobody;
	c->usable++;
	if (c->key_file != NULL && !view_eq(k->blob, buf_view(&c->key)))
		return nobody;
	if (!c->has_trust)
		return view_str(c->name);
	a = approvers_find(&c->trust.now, k->blob);
	return a == NULL ? nobody : a->name;
}

static bool
agent_has(const struct choice *c, struct view blob)
{
	for (size_t i = 0; i < c->n; i++)
		if (view_eq(c->agent[i].blob, blob))
			return true;
	return false;
}

static int
nothing_fits(const struct choice *c, struct err *err)
{
	if (c->n == 0)
		return err_set(err, -ENOENT, "ssh-agent has no key; ssh-add gives it one");
	if (c->key_file != NULL && !agent_has(c, buf_view(&c->key)))
		return err_set(err, -ENOENT,
			"ssh-agent does not have the key of %.100s; ssh-add gives it the private "
			"one",
			c->key_file);
	if (c->key_file != NULL)
		return err_set(err, -ENOENT,
			"the key of %.100s belongs to no approver; demilune approver enrol makes "
			"it one",
			c->key_file);
	return err_set(err, -ENOENT,
		"ssh-agent has %zu key%s, none of an approver; demilune approver enrol makes one",
		c->n, c->n == 1 ? "" : "s");
}

static int
choose(struct choice *c, struct signer *s, struct err *err)
{
	const struct agent_key *found = NULL;
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++) {
		struct view name = name_of(c, &c->agent[i]);

		if (name.n == 0)
			continue;
		n++;
		found = &c->agent[i];
		memcpy(s->name, name.p, name.n);
		s->name[name.n] = '\0';
	}
	if (n == 0)
		return nothing_fits(c, err);
	if (n > 1)
		return err_set(err, -EINVAL,
			"ssh-agent has %zu keys that could sign; say which one with --key FILE.pub",
			n);
	if (c->has_trust) {
		const struct approver *a = approvers_find(&c->trust.now, found->blob);

		s->verify_required = a != NULL && a->verify_required;
	}
	buf_init(&s->key, SSHKEY_BYTES_MAX);
	buf_add_view(&s->key, found->blob);
	sshkey_fingerprint(found->blob, s->fingerprint);
	return buf_check(&s->key) < 0 ? err_set(err, -ENOMEM, "no memory for a key") : 0;
}

int
signer_open(struct cli *cli, struct signer *ret, struct err *err)
{
	auto_choice struct choice c = {0};
	auto_signer struct signer s = {.agent = -1};
	auto_buf struct buf room;
	int r;

	buf_init(&room, LIMIT_AGENT_BYTES);
	r = read_wishes(&cli->args, &c, err);
	if (r == 0)
		r = agent_open(&s.agent, err);
	if (r == 0)
		r = agent_keys(s.agent, &room, c.agent, &c.n, err);
	if (r == 0)
		r = choose(&c, &s, err);
	if (r < 0)
		return r;
	*ret = s;
	s = (struct signer){.agent = -1};
	return 0;
}

void
signer_done(struct signer *s)
{
	if (s->agent >= 0)
		(void)close(s->agent);
	buf_done(&s->key);
	s->agent = -1;
}

int
signer_sign(struct signer *s, struct view record, struct buf *signature, struct err *err)
{
	auto_buf struct buf asked, answer, blob;
	struct sshsig made;
	int r;

	buf_init(&asked, SSHSIG_BYTES_MAX);
	buf_init(&answer, SSHSIG_BYTES_MAX);
	buf_init(&blob, SSHSIG_BYTES_MAX);
	sshsig_signed(SSHSIG_NAMESPACE, SSHSIG_SHA512, record, &asked);
	if (buf_check(&asked) < 0)
		return err_set(err, -ENOMEM, "no memory for a signature");
	r = agent_sign(s->agent, buf_view(&s->key), buf_view(&asked), &answer, err);
	if (r == -EACCES)
		return err_set(err, r,
			"ssh-agent refused to sign with %s: was it confirmed, touched, unlocked?",
			s->fingerprint);
	if (r < 0)
		return r;
	sshsig_write(buf_view(&s->key), SSHSIG_NAMESPACE, buf_view(&answer), &blob);
	if (buf_check(&blob) < 0)
		return err_set(err, -EBADMSG, "the signature of ssh-agent is too long");
	r = sshsig_read(buf_view(&blob), &made, err);
	if (r == 0)
		r = sshsig_verify(&made, record, SSHSIG_NAMESPACE, s->verify_required, err);
	if (r < 0)
		return err_context(err, "ssh-agent");
	buf_add_view(signature, buf_view(&blob));
	return buf_check(signature) < 0 ? err_set(err, -ENOMEM, "no memory for a signature") : 0;
}

int
signer_put(struct json_out *o, const char *key, struct view bytes, struct err *err)
{
	auto_buf struct buf text;

	buf_init(&text, LIMIT_BODY_BYTES);
	base64_encode(bytes, &text);
	if (buf_check(&text) < 0)
		return err_set(err, -ENOMEM, "no memory for a request");
	json_out_key_str(o, key, buf_view(&text));
	return 0;
}
