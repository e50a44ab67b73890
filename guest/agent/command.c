/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program of a job. The environment is exactly what START carried. Signals: the mask is emptied here;
 * dispositions need nothing, because PID 1 reset all at its start and handles two, which execve resets.
 * Runs between vfork and execve: system calls and the stack only.
 */
#include "child.h"
#include "trust.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <termios.h>

static const char default_search[] = "/usr/local/bin:/usr/bin:/bin";

/* Pointers to the NUL-terminated strings of a blob, from ret[skip] on, then NULL, and room for `more`. */
static char **
strings(uint8_t *p, size_t n, size_t skip, size_t more, size_t *ret_count)
{
	size_t count = 0, at = skip;
	char **list;

	for (size_t i = 0; i < n; i++)
		count += p[i] == '\0';
	list = calloc(skip + count + more + 1, sizeof(*list));
	if (list == NULL)
		return NULL;
	for (size_t i = 0; i < n; i += strlen((char *)p + i) + 1)
		list[at++] = (char *)p + i;
	*ret_count = count;
	return list;
}

static bool
has_variable(char *const *env, const char *assignment)
{
	size_t n = strcspn(assignment, "=") + 1;

	for (; *env != NULL; env++)
		if (strncmp(*env, assignment, n) == 0)
			return true;
	return false;
}

/* What the caller said himself stays. */
static void
trust_add(char **env, size_t vars)
{
	for (size_t i = 0; trust_environment[i] != NULL; i++)
		if (!has_variable(env, trust_environment[i]))
			env[vars++] = (char *)(uintptr_t)trust_environment[i];
}

int
command_make(const struct job *j, struct command *ret)
{
	size_t argv_n = j->start.argv_bytes, env_n = j->start.env_bytes, words = 0, vars = 0;
	struct command c = {.job = j, .search = default_search};
	auto_free char **argv = NULL, **env = NULL;
	auto_free char *path = NULL;

	if (argv_n == 0 || j->spec[argv_n - 1] != '\0' ||
		(env_n > 0 && j->spec[argv_n + env_n - 1] != '\0'))
		return EINVAL;
	argv = strings(j->spec, argv_n, 2, 0, &words);
	env = strings(j->spec + argv_n, env_n, 0, TRUST_VARIABLES, &vars);
	if (argv == NULL || env == NULL)
		return ENOMEM;
	for (size_t i = 0; i < vars; i++) {
		if (strncmp(env[i], "PATH=", 5) == 0)
			c.search = env[i] + 5;
		if (strncmp(env[i], "HOME=", 5) == 0)
			c.cwd = env[i] + 5;
	}
	if (j->path[0] != '\0' || c.cwd == NULL || c.cwd[0] == '\0')
		c.cwd = j->path[0] != '\0' ? j->path : "/";
	if (j->agent->trusts)
		trust_add(env, vars);
	path = malloc(strlen(c.search) + strlen(argv[2]) + 2);
	if (path == NULL)
		return ENOMEM;
	c.argv = take_ptr(argv);
	c.env = take_ptr(env);
	c.path = take_ptr(path);
	*ret = c;
	return 0;
}

static int
exec_shell(const struct command *c)
{
	static const char *const shells[][2] = {{"/bin/bash", "bash"}, {"/bin/sh", "sh"}};
	static char option[] = "-c";
	int fault = ENOENT;

	for (size_t i = 0; i < ARRAY_LEN(shells) && fault == ENOENT; i++) {
		c->argv[0] = (char *)(uintptr_t)shells[i][1];
		c->argv[1] = option;
		(void)execve(shells[i][0], c->argv, c->env);
		fault = errno;
	}
	return fault;
}

/* As execvp(3), but without its way of feeding what is no program to a shell. */
static int
exec_search(const struct command *c)
{
	const char *name = c->argv[2];
	int fault = ENOENT;

	if (strchr(name, '/') != NULL || name[0] == '\0') {
		(void)execve(name, c->argv + 2, c->env);
		return errno;
	}
	for (const char *at = c->search;; at++) {
		size_t n = strcspn(at, ":");

		memcpy(c->path, at, n);
		c->path[n] = '/';
		memcpy(c->path + n + (n > 0), name, strlen(name) + 1);
		(void)execve(c->path, c->argv + 2, c->env);
		if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
			return errno;
		if (errno == EACCES)
			fault = EACCES;
		at += n;
		if (*at == '\0')
			return fault;
	}
}

static int
become(const struct command *c)
{
	const struct job *j = c->job;
	sigset_t none;
	int r;

	(void)sigemptyset(&none);
	if (sigprocmask(SIG_SETMASK, &none, NULL) < 0 || setsid() < 0)
		return errno;
	if (j->start.pty && ioctl(0, TIOCSCTTY, 0) < 0)
		return errno;
	/*
	 * A hundred programs that spin must not keep PID 1 and the reaper from ending them. Among
	 * themselves programs see no difference, and none may raise its priority again.
	 */
	if (setpriority(PRIO_PROCESS, 0, AGENT_NICE) < 0)
		return errno;
	r = drop_all(&j->agent->drop, j->start.uid);
	if (r < 0)
		return -r;
	(void)umask(022); /* has no error */
	if (chdir(c->cwd) < 0)
		return errno;
	return j->start.shell ? exec_shell(c) : exec_search(c);
}

void
command_become(const struct command *c, volatile int *ret_fault)
{
	*ret_fault = become(c);
	_exit(127);
}
