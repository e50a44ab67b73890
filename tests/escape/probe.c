/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The probe's main: runs each row of probes.def in a process of its own with a deadline, and prints
 * "id TAB held|broken TAB detail" for each. Started in a sandbox by test_escape.py; exit code 0 means that all rows
 * were tried, whatever they found. Other uses: --list prints the table, --victim MARK plays the victim, --ids
 * prints uid and effective uid (for the set-user-id test), --hog fills a memory file (for the order in which jobs are killed).
 *
 *     probe [--NAME VALUE]... [--only PREFIX] [--where OPEN|SHUT|LIMIT]
 */
#include "probe.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WANTED_MAX = 8, DEADLINE_S = 60, NOTHING = -2, DIED = -3 };

static const struct row {
	const char *id, *class, *where, *prose;
	attempt_fn *attempt;
	int wanted[WANTED_MAX + 1];
} rows[] = {
#define PROBE(id, class, where, prose, ...) \
	{#id, #class, #where, prose, try_##id, {__VA_ARGS__, NOTHING}},
#include "probes.def"
#undef PROBE
};

struct result {
	int outcome;
	struct note note;
};

static void
outcome_text(int outcome, char *ret, size_t n)
{
	if (outcome == WORKED)
		(void)snprintf(ret, n, "it worked");
	else if (outcome == OWN)
		(void)snprintf(ret, n, "as it should be");
	else if (outcome == DIED)
		(void)snprintf(ret, n, "ended without a result");
	else if (strerrorname_np(outcome) != NULL)
		(void)snprintf(ret, n, "%s", strerrorname_np(outcome));
	else
		(void)snprintf(ret, n, "outcome %d", outcome);
}

static bool
wanted(const struct row *row, int outcome)
{
	for (size_t i = 0; i < WANTED_MAX && row->wanted[i] != NOTHING; i++)
		if (row->wanted[i] == outcome)
			return true;
	return false;
}

static _Noreturn void
row_child(const struct row *row, const struct given *g, int out)
{
	struct result r = {.outcome = WORKED};

	(void)setsid(); /* a child is no leader: it cannot fail */
	(void)alarm(DEADLINE_S);
	r.outcome = row->attempt(g, &r.note);
	_exit(write(out, &r, sizeof(r)) == (ssize_t)sizeof(r) ? 0 : 1);
}

/* The row's process; tried again while a row before it still holds what it used up. */
static pid_t
row_start(const struct row *row, const struct given *g, int out)
{
	for (int i = 0; i < 100; i++) {
		pid_t pid = fork();

		if (pid == 0)
			row_child(row, g, out);
		if (pid > 0)
			return pid;
		(void)usleep(20000);
	}
	return -1;
}

static struct result
row_run(const struct row *row, const struct given *g)
{
	struct result r = {.outcome = DIED};
	int pipe_fds[2], status = 0;
	pid_t pid;

	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return r;
	(void)fflush(stdout);
	pid = row_start(row, g, pipe_fds[1]);
	(void)close(pipe_fds[1]);
	if (pid < 0 || read(pipe_fds[0], &r, sizeof(r)) != (ssize_t)sizeof(r)) {
		r = (struct result){.outcome = DIED};
		if (pid > 0 && waitpid(pid, &status, 0) == pid)
			NOTE(&r.note, "wait status %#x", (unsigned)status);
	} else {
		(void)waitpid(pid, &status, 0);
	}
	(void)close(pipe_fds[0]);
	if (pid > 0)
		(void)kill(-pid, SIGKILL); /* what it left */
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	return r;
}

static void
row_report(const struct row *row, const struct given *g)
{
	struct result r = row_run(row, g);
	char text[40];

	outcome_text(r.outcome, text, sizeof(text));
	for (char *p = r.note.text; *p != '\0'; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	printf("%s\t%s\t%s%s%s\n", row->id, wanted(row, r.outcome) ? "held" : "broken", text,
		r.note.text[0] == '\0' ? "" : ": ", r.note.text);
}

static int
list(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		printf("%s\t%s\t%s\t%s\n", rows[i].id, rows[i].class, rows[i].where, rows[i].prose);
	return 0;
}

static void
inherited_look(struct given *g)
{
	size_t used = 0;

	for (int fd = 3; fd < 65536 && used + 16 < sizeof(g->inherited); fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			used += (size_t)snprintf(
				g->inherited + used, sizeof(g->inherited) - used, "%d ", fd);
}

static uint64_t
number(const char *text)
{
	uint64_t v = 0;

	for (const char *p = text; *p != '\0'; p++) {
		if (*p < '0' || *p > '9') {
			(void)fprintf(stderr, "probe: %s is not a number\n", text);
			_exit(2);
		}
		v = v * 10 + (uint64_t)(*p - '0');
	}
	return v;
}

static bool
given_read(struct given *g, const char *name, const char *value)
{
	if (strcmp(name, "--canary") == 0)
		g->canary_path = value;
	else if (strcmp(name, "--socket") == 0)
		g->socket_path = value;
	else if (strcmp(name, "--mark") == 0)
		g->mark = value;
	else if (strcmp(name, "--host-pid") == 0)
		g->host_pid = (pid_t)number(value);
	else if (strcmp(name, "--api-port") == 0)
		g->api_port = (uint16_t)number(value);
	else if (strcmp(name, "--memory") == 0)
		g->memory_bytes = number(value);
	else if (strcmp(name, "--disk") == 0)
		g->disk_bytes = number(value);
	else if (strcmp(name, "--inodes") == 0)
		g->inodes = (uint32_t)number(value);
	else if (strcmp(name, "--pids") == 0)
		g->pids = (uint32_t)number(value);
	else if (strcmp(name, "--open-files") == 0)
		g->open_files = (uint32_t)number(value);
	else
		return false;
	return true;
}

int
main(int argc, char **argv)
{
	struct given g = {.canary_path = "/", .socket_path = "/", .mark = "none"};
	const char *only = "", *where = NULL;

	inherited_look(&g);
	if (argc == 2 && strcmp(argv[1], "--list") == 0)
		return list();
	if (argc == 2 && strcmp(argv[1], "--ids") == 0)
		return printf("%u %u\n", getuid(), geteuid()) < 0;
	if (argc == 2 && strcmp(argv[1], "--hog") == 0)
		return hog_run();
	if (argc == 4 && strcmp(argv[1], "--victim") == 0)
		return victim_run(argv[2], argv[3]);
	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--only") == 0)
			only = argv[i + 1];
		else if (strcmp(argv[i], "--where") == 0)
			where = argv[i + 1];
		else if (!given_read(&g, argv[i], argv[i + 1]))
			return 2;
	}
	/* What a row leaves behind is ours to end. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return 1;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strncmp(rows[i].id, only, strlen(only)) == 0 &&
			(where == NULL || strcmp(where, rows[i].where) == 0))
			row_report(&rows[i], &g);
	return 0;
}
