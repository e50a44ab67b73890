/* SPDX-License-Identifier: Apache-2.0 */
/* Probes of what is mounted, installed and running; see probe.h. */
#include "cli/probe.h"

#include "cli/answer.h"
#include "cli/program.h"
#include "lib/base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

enum { TABLE_BYTES = 256 << 10 };

static const char *const needed_v2[] = {"memory", "pids", "cpu"};
static const char *const needed_v1[] = {"memory", "pids", "cpu", "cpuacct", "freezer"};

/* ---- cgroups ---- */

/* Whether `name` is one of the words of a list with these separators. */
static bool
has_word(const char *list, const char *separators, const char *name)
{
	while (*list != '\0') {
		size_t n = strcspn(list, separators);

		if (n == strlen(name) && memcmp(list, name, n) == 0)
			return true;
		list += n + (list[n] != '\0');
	}
	return false;
}

static bool
v2_has_all(const char *at)
{
	char path[2100], list[512] = {0};
	struct err unused = {0};
	size_t n = 0;
	int fd auto_fd = -1;

	(void)snprintf(path, sizeof(path), "%s/cgroup.controllers", at);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fd_read_upto(fd, list, sizeof(list) - 1, &n, &unused) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(needed_v2); i++)
		if (!has_word(list, " \n", needed_v2[i]))
			return false;
	return true;
}

/* The v1 controllers that are mounted, as bits of needed_v1; sets *ret_v2 when a v2 hierarchy has all it needs. */
static unsigned
read_mounts(FILE *mounts, bool *ret_v2)
{
	char line[4096], at[2048], type[64], options[1024];
	unsigned found = 0;

	while (fgets(line, sizeof(line), mounts) != NULL) {
		const char *dash = strstr(line, " - ");

		if (dash == NULL || sscanf(line, "%*s %*s %*s %*s %2047s", at) != 1 ||
			sscanf(dash, " - %63s %*s %1023s", type, options) != 2)
			continue;
		if (strcmp(type, "cgroup2") == 0 && v2_has_all(at))
			*ret_v2 = true;
		for (size_t i = 0; strcmp(type, "cgroup") == 0 && i < ARRAY_LEN(needed_v1); i++)
			if (has_word(options, ",", needed_v1[i]))
				found |= 1U << i;
	}
	return found;
}

enum probe_state
probe_cgroups(struct cli *cli, char detail[static PROBE_TEXT])
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	bool v2 = false;
	unsigned v1;
	size_t n;

	(void)cli;
	if (mounts == NULL) {
		(void)snprintf(detail, PROBE_TEXT, "/proc cannot be read");
		return PROBE_MISSING;
	}
	v1 = read_mounts(mounts, &v2);
	(void)fclose(mounts);
	if (v2 || v1 == (1U << ARRAY_LEN(needed_v1)) - 1) {
		(void)snprintf(detail, PROBE_TEXT, "version %d with all controllers", v2 ? 2 : 1);
		return PROBE_OK;
	}
	n = (size_t)snprintf(detail, PROBE_TEXT, "version 2 lacks controllers, version 1 lacks");
	for (size_t i = 0; i < ARRAY_LEN(needed_v1); i++)
		if ((v1 >> i & 1) == 0)
			n += (size_t)snprintf(detail + n, PROBE_TEXT - n, " %s", needed_v1[i]);
	return PROBE_MISSING;
}

/* ---- programs ---- */

enum probe_state
probe_programs(struct cli *cli, char detail[static PROBE_TEXT])
{
	char path[PROGRAM_PATH_MAX];
	struct err unused = {0};
	size_t n = 0;

	(void)cli;
	for (unsigned i = 0; i < PROGRAMS; i++)
		if (program_find((enum program)i, path, &unused) < 0 && n < PROBE_TEXT)
			n += (size_t)snprintf(detail + n, PROBE_TEXT - n, "%s%s", n == 0 ? "" : " ",
				program_file((enum program)i));
	if (n != 0)
		return PROBE_MISSING;
	(void)snprintf(detail, PROBE_TEXT, "all %d beside this one", PROGRAMS);
	return PROBE_OK;
}

static bool
in_path(const char *name)
{
	static const char *const dirs[] = {
		"/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/local/bin", "/usr/local/sbin"};
	char path[256];

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dirs[i], name);
		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

enum probe_state
probe_builders(struct cli *cli, char detail[static PROBE_TEXT])
{
	bool erofs = in_path("mkfs.erofs"), debstrap = in_path("mmdebstrap");

	(void)cli;
	(void)snprintf(detail, PROBE_TEXT, "%s%s%s", erofs && debstrap ? "both are there" : "",
		erofs ? "" : "no mkfs.erofs",
		debstrap ? ""
		: erofs  ? "no mmdebstrap"
			 : ", no mmdebstrap");
	return erofs && debstrap ? PROBE_OK : PROBE_MISSING;
}

/* ---- templates and daemon ---- */

enum probe_state
probe_templates(struct cli *cli, char detail[static PROBE_TEXT])
{
	const char *option = args_text(&cli->args, OPT_STATE), *state = program_state(option);
	json_t *list auto_json = NULL;
	struct err err = {0};
	char path[4096];
	size_t n = 0;
	DIR *dir;

	if (option == NULL &&
		client_get(&cli->client, view_str("/v1/templates"), &list, &err) == 0 &&
		json_is_array(list)) {
		n = json_array_size(list);
		(void)snprintf(detail, PROBE_TEXT, "%zu, says the daemon", n);
		return n != 0 ? PROBE_OK : PROBE_MISSING;
	}
	(void)snprintf(path, sizeof(path), "%s/templates/index",
		state != NULL ? state : PROGRAM_STATE_DIR);
	dir = opendir(path);
	if (dir == NULL) {
		(void)snprintf(detail, PROBE_TEXT, "%.120s: %s", path, strerror(errno));
		return errno == EACCES ? PROBE_UNTRIED : PROBE_MISSING;
	}
	for (const struct dirent *e; (e = readdir(dir)) != NULL;)
		n += e->d_type == DT_REG;
	(void)closedir(dir);
	(void)snprintf(detail, PROBE_TEXT, "%zu in %.120s", n, path);
	return n != 0 ? PROBE_OK : PROBE_MISSING;
}

enum probe_state
probe_daemon(struct cli *cli, char detail[static PROBE_TEXT])
{
	const struct place *place = &cli->client.place;
	json_t *answer auto_json = NULL;
	struct err err = {0};

	if (client_get(&cli->client, view_str("/readyz"), &answer, &err) == 0) {
		(void)snprintf(detail, PROBE_TEXT, "it answers and is ready");
		return PROBE_OK;
	}
	if (err.code == -ENOENT || err.code == -ECONNREFUSED)
		(void)snprintf(detail, PROBE_TEXT, "none at %.120s",
			place->tcp ? place->authority : place->socket);
	else
		(void)snprintf(detail, PROBE_TEXT, "%.190s", err.text);
	return PROBE_MISSING;
}
