/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether operations and policies compile, whether the secrets and roots that they name are there, and whether the uids of sandboxes and gateways are
 * nobody else's; see probe.h. What only root can see is not told by anybody else.
 */
#include "cli/check.h"
#include "cli/probe.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>

enum { PATH_BYTES = 600 };

/* ---- what is named ---- */

/* Who names it, for the sentence. */
struct namer {
	const char *kind; /* "operation" */
	struct view name;
};

/* A file that is not there, told once; one that cannot be looked at is not told. */
static void
need(struct cli *cli, size_t before, const char *path, const struct namer *who, const char *mode)
{
	const struct buf *told = &cli->doctor->findings;
	struct stat st;

	if (lstat(path, &st) == 0 || errno != ENOENT ||
		memmem(told->p + before, told->n - before, path, strlen(path)) != NULL)
		return;
	probe_finding(cli,
		"%s is not there, and the %s %.*s needs it: put it there: install -m %s FILE %s",
		path, who->kind, VIEW_ARGS(who->name), mode, path);
}

static void
need_secret(struct cli *cli, size_t before, struct view secret, const struct namer *who)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof(path), "%s/%.*s", cli->doctor->settings.secrets_dir,
		VIEW_ARGS(secret));
	if (secret.n > 0)
		need(cli, before, path, who, "0600");
}

static void
need_roots(struct cli *cli, size_t before, struct view roots, const struct namer *who)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof(path), "%s/%.*s.pem", cli->doctor->settings.trust_dir,
		VIEW_ARGS(roots));
	if (roots.n > 0)
		need(cli, before, path, who, "0644");
}

/* ---- operations and policies ---- */

/* After a compilation: whether there is more to look at. */
static bool
is_compiled(struct cli *cli, int r, unsigned faults, const char *dir, const char *verb,
	const struct err *err, enum probe_state *state, char detail[static PROBE_TEXT])
{
	if (r < 0) {
		(void)snprintf(detail, PROBE_TEXT, "%.190s", err->text);
		*state = PROBE_UNTRIED;
		return false;
	}
	if (faults > 0)
		probe_finding(cli,
			"%s has %u fault%s, and the daemon does not start with it: "
			"demilune %s check %s",
			dir, faults, faults == 1 ? "" : "s", verb, dir);
	return faults == 0;
}

static enum probe_state
told(struct cli *cli, size_t before, enum probe_state state, const char *dir,
	char detail[static PROBE_TEXT])
{
	unsigned wrong = probe_findings_since(cli, before);

	if (wrong == 0)
		return state;
	(void)snprintf(detail, PROBE_TEXT, "%u thing%s to mend in or for %.120s", wrong,
		wrong == 1 ? "" : "s", dir);
	return PROBE_WRONG;
}

/* The files of the directory were looked at: nobody else can change them. */
static bool
is_there(const char *dir)
{
	struct stat st;

	return stat(dir, &st) == 0;
}

enum probe_state
probe_operations(struct cli *cli, char detail[static PROBE_TEXT])
{
	const char *dir = cli->doctor->settings.operations_dir;
	enum probe_state state = probe_operation_files(cli, detail);
	size_t before = cli->doctor->findings.n;
	struct catalogue c = {0};
	struct err err = {0};
	unsigned faults = 0;
	int r;

	if (state != PROBE_OK || !is_there(dir))
		return state;
	r = check_operations(dir, &c, &faults, &err);
	if (is_compiled(cli, r, faults, dir, "operation", &err, &state, detail))
		for (size_t i = 0; i < c.n; i++) {
			const struct operation *op = &c.op[i];
			const struct provider *both[] = {&op->provider, &op->verify_provider};
			const struct namer who = {"operation", op->name};

			for (size_t k = 0; k < ARRAY_LEN(both); k++) {
				need_secret(cli, before, both[k]->credential_secret, &who);
				need_roots(cli, before, both[k]->roots, &who);
			}
		}
	catalogue_done(&c);
	return told(cli, before, state, dir, detail);
}

enum probe_state
probe_policies(struct cli *cli, char detail[static PROBE_TEXT])
{
	const struct settings *s = &cli->doctor->settings;
	enum probe_state state = probe_policy_files(cli, detail);
	size_t before = cli->doctor->findings.n;
	struct policies all = {0};
	struct err err = {0};
	unsigned faults = 0;
	int r;

	if (state != PROBE_OK || !is_there(s->policies_dir))
		return state;
	r = check_policies(s->policies_dir, NULL, &all, &faults, &err);
	if (is_compiled(cli, r, faults, s->policies_dir, "policy", &err, &state, detail))
		for (size_t i = 0; i < all.n; i++) {
			const struct policy *p = &all.row[i];
			const struct namer who = {"policy", p->name};

			for (size_t k = 0; k < p->nrules; k++) {
				const struct rule *rule = &p->rule[k];

				need_secret(cli, before, rule->credential_secret, &who);
				need_roots(cli, before, rule->roots, &who);
				if ((rule->tls || rule->kind == RULE_KIND_BROKERED) &&
					rule->roots.n == 0)
					need(cli, before, s->roots, &who, "0644");
			}
		}
	policies_done(&all);
	return told(cli, before, state, s->policies_dir, detail);
}

/* ---- uids ---- */

/* Ids that the daemon gives away. */
struct range {
	const char *of, *option;
	uint64_t begin, end;
};

enum { RANGES = 2, IDS_OF_SANDBOX = 65536 };

static void
clash(struct cli *cli, const struct range ranges[static RANGES], uint64_t begin, uint64_t end,
	const char *whose)
{
	for (size_t i = 0; i < RANGES; i++)
		if (begin < ranges[i].end && end > ranges[i].begin)
			probe_finding(cli,
				"%s is among the ids %" PRIu64 " to %" PRIu64 " of %s: give %s "
				"another number in demilune.yaml",
				whose, ranges[i].begin, ranges[i].end - 1, ranges[i].of,
				ranges[i].option);
}

static void
look_at_accounts(struct cli *cli, const struct range ranges[static RANGES])
{
	const struct passwd *user;
	const struct group *group;
	char whose[160];

	setpwent();
	while ((user = getpwent()) != NULL) {
		(void)snprintf(whose, sizeof(whose), "the user %.80s (%u)", user->pw_name,
			(unsigned)user->pw_uid);
		clash(cli, ranges, user->pw_uid, (uint64_t)user->pw_uid + 1, whose);
	}
	endpwent();
	setgrent();
	while ((group = getgrent()) != NULL) {
		(void)snprintf(whose, sizeof(whose), "the group %.80s (%u)", group->gr_name,
			(unsigned)group->gr_gid);
		clash(cli, ranges, group->gr_gid, (uint64_t)group->gr_gid + 1, whose);
	}
	endgrent();
}

/* Lines "name:first:count" of subuid(5). */
static void
look_at_delegated(struct cli *cli, const struct range ranges[static RANGES], const char *path)
{
	FILE *file = fopen(path, "re");
	char line[512], name[128], whose[256];
	unsigned long first, count;

	if (file == NULL)
		return;
	while (fgets(line, sizeof(line), file) != NULL) {
		if (sscanf(line, "%127[^:]:%lu:%lu", name, &first, &count) != 3 || count == 0)
			continue;
		(void)snprintf(whose, sizeof(whose), "what %s gives to %s (%lu and %lu more)", path,
			name, first, count - 1);
		clash(cli, ranges, first, first + count, whose);
	}
	(void)fclose(file); /* only read */
}

enum probe_state
probe_uids(struct cli *cli, char detail[static PROBE_TEXT])
{
	const struct settings *s = &cli->doctor->settings;
	const struct range ranges[RANGES] = {
		{"sandboxes", "uids.sandbox_base", s->sandbox_uid_base,
			s->sandbox_uid_base + (uint64_t)s->sandbox_uid_slots * IDS_OF_SANDBOX},
		{"gateways", "uids.gateway_base", s->gateway_uid_base,
			(uint64_t)s->gateway_uid_base + s->sandbox_uid_slots},
	};
	size_t before = cli->doctor->findings.n;
	unsigned wrong;

	if (cli->doctor->unsettled[0] != '\0') {
		(void)snprintf(detail, PROBE_TEXT, "%s", cli->doctor->unsettled);
		return PROBE_UNTRIED;
	}
	look_at_accounts(cli, ranges);
	look_at_delegated(cli, ranges, "/etc/subuid");
	look_at_delegated(cli, ranges, "/etc/subgid");
	wrong = probe_findings_since(cli, before);
	(void)snprintf(detail, PROBE_TEXT,
		"%" PRIu64 " to %" PRIu64 " for sandboxes, %" PRIu64 " to %" PRIu64
		" for gateways%s",
		ranges[0].begin, ranges[0].end - 1, ranges[1].begin, ranges[1].end - 1,
		wrong > 0 ? "; others have some of them" : "");
	return wrong > 0 ? PROBE_WRONG : PROBE_OK;
}
