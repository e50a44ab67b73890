/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who can open or change the files on which approvals and credentials stand; see probe.h. Each that is wrong is named with the
 * command that mends it. The rules are those that supervisor and compiler apply when they open them.
 */
#include "cli/probe.h"
#include "cli/trust.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

enum { PATH_BYTES = 600 };

/* What may be in a directory, and with which rights. */
struct rule {
	mode_t never;         /* bits that no entry may have */
	const char *mode;     /* for chmod of a file */
	const char *dir_mode; /* and of the directory */
	const char *reason;   /* "... can read it" */
	const char *after;    /* what else is to be done; may be empty */
	bool broker;          /* may own the files */
	bool (*about)(const char *name);
};

void
probe_finding(struct cli *cli, const char *fmt, ...)
{
	char text[3 * PATH_BYTES];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buf_add(&cli->doctor->findings, text, strlen(text) + 1);
}

/* A path as one word of a shell. */
static const char *
quoted(const char *path, char ret[static PATH_BYTES * 4])
{
	size_t safe = strspn(
		       path, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/"),
	       n = 0;

	if (path[safe] == '\0')
		return path;
	ret[n++] = '\'';
	for (const char *c = path; *c != '\0'; c++) {
		if (*c == '\'') {
			memcpy(ret + n, "'\\'", 3);
			n += 3;
		}
		ret[n++] = *c;
	}
	ret[n++] = '\'';
	ret[n] = '\0';
	return ret;
}

static void
look(struct cli *cli, const struct rule *rule, const char *path, const struct stat *st,
	bool directory)
{
	char room[PATH_BYTES * 4];
	const char *word = quoted(path, room), *mode = directory ? rule->dir_mode : rule->mode;
	uid_t broker = cli->doctor->settings.broker_uid;

	if (S_ISLNK(st->st_mode)) {
		probe_finding(cli,
			"%s is a symbolic link, which is not followed: put the %s itself there: rm "
			"%s",
			path, directory ? "directory" : "file", word);
		return;
	}
	if (directory ? !S_ISDIR(st->st_mode) : !S_ISREG(st->st_mode)) {
		probe_finding(cli, "%s is not a %s: rm -r %s", path,
			directory ? "directory" : "regular file", word);
		return;
	}
	if (st->st_uid != 0 && (directory || !rule->broker || st->st_uid != broker))
		probe_finding(cli, "%s belongs to the user %u, who can change it: chown root %s",
			path, (unsigned)st->st_uid, word);
	if ((st->st_mode & rule->never) != 0)
		probe_finding(cli, "%s has mode %04o: %s: chmod %s %s%s", path,
			st->st_mode & 07777U, rule->reason, mode, word,
			directory ? "" : rule->after);
}

/* Negative: it cannot be told. */
static int
look_inside(struct cli *cli, const struct rule *rule, const char *dir, unsigned *ret_files)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (list == NULL) {
		int r = -errno;

		if (fd >= 0)
			(void)close(fd); /* only read */
		return r;
	}
	while ((e = readdir(list)) != NULL) {
		char path[PATH_BYTES];
		struct stat st;

		if (!rule->about(e->d_name) || fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		look(cli, rule, path, &st, false);
		++*ret_files;
	}
	(void)closedir(list);
	return 0;
}

unsigned
probe_findings_since(const struct cli *cli, size_t before)
{
	const struct buf *findings = &cli->doctor->findings;
	unsigned n = 0;

	for (size_t i = before; i < findings->n; i++)
		n += findings->p[i] == '\0' ? 1U : 0U;
	return n;
}

static enum probe_state
probe_dir(struct cli *cli, const struct rule *rule, const char *dir, char detail[static PROBE_TEXT])
{
	size_t before = cli->doctor->findings.n;
	unsigned files = 0, wrong;
	struct stat st;
	int r = lstat(dir, &st) < 0 ? -errno : 0;

	if (cli->doctor->unsettled[0] != '\0') {
		(void)snprintf(detail, PROBE_TEXT, "%s", cli->doctor->unsettled);
		return PROBE_UNTRIED;
	}
	if (r == -ENOENT) {
		(void)snprintf(detail, PROBE_TEXT, "there is no %.150s", dir);
		return PROBE_OK;
	}
	if (r == 0) {
		look(cli, rule, dir, &st, true);
		r = S_ISDIR(st.st_mode) ? look_inside(cli, rule, dir, &files) : 0;
	}
	wrong = probe_findings_since(cli, before);
	if (wrong > 0)
		(void)snprintf(detail, PROBE_TEXT, "%u thing%s to mend in %.120s", wrong,
			wrong == 1 ? "" : "s", dir);
	else if (r < 0)
		(void)snprintf(detail, PROBE_TEXT, "%.120s: %s", dir, strerror(-r));
	else
		(void)snprintf(detail, PROBE_TEXT, "%u in %.150s", files, dir);
	return wrong > 0 ? PROBE_WRONG : r < 0 ? PROBE_UNTRIED : PROBE_OK;
}

static bool
any_name(const char *name)
{
	return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static bool
ends_in(const char *name, const char *suffix)
{
	size_t n = strlen(name), m = strlen(suffix);

	return n > m && strcmp(name + n - m, suffix) == 0;
}

static bool
trust_name(const char *name)
{
	return strcmp(name, "approvers") == 0 || ends_in(name, ".pem");
}

static bool
yaml_name(const char *name)
{
	return name[0] != '.' && ends_in(name, ".yaml");
}

enum probe_state
probe_secrets(struct cli *cli, char detail[static PROBE_TEXT])
{
	static const struct rule rule = {.never = 077,
		.mode = "0600",
		.dir_mode = "0700",
		.reason = "others can open it",
		.after = ", and count the secret as known",
		.broker = true,
		.about = any_name};

	return probe_dir(cli, &rule, cli->doctor->settings.secrets_dir, detail);
}

/* Nobody else can change it; does it say anything? The broker denies everything when it does not. */
static enum probe_state
probe_approvers(struct cli *cli, char detail[static PROBE_TEXT])
{
	const char *dir = cli->doctor->settings.trust_dir;
	char room[PATH_BYTES * 4];
	auto_trust struct trust t = {.dir = -1};
	struct err err;
	int r = trust_open(dir, false, &t, &err);

	if (r >= 0 || r == -ENOENT)
		return PROBE_OK;
	probe_finding(cli,
		"%s/approvers counts for nothing, and every action is denied: %s; mend it, then: "
		"demilune approver list --trust %s",
		dir, err.text, quoted(dir, room));
	(void)snprintf(detail, PROBE_TEXT, "1 thing to mend in %.120s", dir);
	return PROBE_WRONG;
}

enum probe_state
probe_trust(struct cli *cli, char detail[static PROBE_TEXT])
{
	static const struct rule rule = {.never = 022,
		.mode = "go-w",
		.dir_mode = "go-w",
		.reason = "others can make themselves approvers",
		.after = ", and look at what stands in it",
		.about = trust_name};

	enum probe_state state = probe_dir(cli, &rule, cli->doctor->settings.trust_dir, detail);

	return state == PROBE_OK ? probe_approvers(cli, detail) : state;
}

static const struct rule rule_yaml = {.never = 022,
	.mode = "go-w",
	.dir_mode = "go-w",
	.reason = "others can say what is done",
	.after = ", and look at what stands in it",
	.about = yaml_name};

enum probe_state
probe_operation_files(struct cli *cli, char detail[static PROBE_TEXT])
{
	return probe_dir(cli, &rule_yaml, cli->doctor->settings.operations_dir, detail);
}

enum probe_state
probe_policy_files(struct cli *cli, char detail[static PROBE_TEXT])
{
	return probe_dir(cli, &rule_yaml, cli->doctor->settings.policies_dir, detail);
}
