/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for demilune-config: the "configuration file" is the packed body of CONFIG_SETTINGS, or one of the words
 * that make it misbehave. With the argument `operations` the file `text` of the directory is what stands in the catalogue, or such a word.
 * With `policies` it is one policy a line, "NAME FLAGS PORT,PORT ROOTS,ROOTS", which is its document too: flags of b (brokered), 6, c
 * (capture) and -.
 */
#include "lib/base/fd.h"
#include "lib/base/sha256.h"
#include "lib/ipc/datagram.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

static void
say_fds(enum msg_type type, struct view body, const int *fds, size_t n)
{
	auto_buf struct buf packed;
	struct err err;

	buf_init(&packed, IPC_MAX);
	ipc_pack(&packed, type, 0, body);
	if (ipc_write(FD_CONFIG_SUPERVISOR, buf_view(&packed), fds, n, &err) < 0)
		_exit(1);
}

static void
say(enum msg_type type, struct view body)
{
	say_fds(type, body, NULL, 0);
}

static void
fault(uint32_t line, uint32_t column, const char *text)
{
	struct msg_config_fault m = {.line = line, .column = column};
	auto_buf struct buf body;

	(void)snprintf(m.text, sizeof(m.text), "%s", text);
	buf_init(&body, IPC_MAX);
	msg_config_fault_put(&body, &m);
	say(MSG_CONFIG_FAULT, buf_view(&body));
}

/* A memory file as the compiler makes it; with words of the test without one of its seals, or too large. */
static int
memory_file(struct view text)
{
	int fd = memfd_create("operations", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	struct err err;

	if (fd_write_all(fd, text.p, text.n, &err) < 0)
		_exit(1);
	if (view_starts(text, "large") && ftruncate(fd, (4 << 20) + 1) < 0)
		_exit(1);
	if (view_starts(text, "unsealed"))
		seals &= ~F_SEAL_WRITE;
	if (fcntl(fd, F_ADD_SEALS, seals) < 0)
		_exit(1);
	return fd;
}

static void
operations(struct msg_config_end *end)
{
	static uint8_t text[4096];
	int fd = openat(FD_CONFIG_INPUT, "text", O_RDONLY | O_CLOEXEC);
	const struct msg_config_catalogue m = {.operations = 1, .origins = 1};
	auto_buf struct buf body;
	struct err err;
	size_t n = 0;
	struct view v;

	if (fd >= 0 && fd_read_upto(fd, text, sizeof(text), &n, &err) < 0)
		_exit(1);
	v = view_of(text, n);
	if (view_starts(v, "faults")) {
		fault(3, 7, "the first fault");
		end->faults = 1;
		return;
	}
	if (view_starts(v, "die"))
		_exit(1);
	const int fds[] = {view_starts(v, "plain") ? fd : memory_file(v), memory_file(v)};

	buf_init(&body, IPC_MAX);
	msg_config_catalogue_put(&body, &m);
	say_fds(MSG_CONFIG_CATALOGUE, buf_view(&body), fds, 2);
	if (view_starts(v, "twice"))
		say_fds(MSG_CONFIG_CATALOGUE, buf_view(&body), fds, 2);
}

static struct msg_config_policy
policy_of(struct view line)
{
	struct msg_config_policy m = {0};
	char text[256], flags[8] = "", ports[128] = "", roots[128] = "", *save = NULL;
	size_t n = 0;

	(void)snprintf(text, sizeof(text), "%.*s", VIEW_ARGS(line));
	(void)sscanf(text, "%63s %7s %127s %127s", m.name, flags, ports, roots);
	sha256_of(line, m.policy);
	m.brokered = strchr(flags, 'b') != NULL;
	m.ipv6 = strchr(flags, '6') != NULL;
	m.capture = strchr(flags, 'c') != NULL;
	for (char *p = strtok_r(ports, ",", &save); p != NULL; p = strtok_r(NULL, ",", &save))
		m.ports[n++] = (uint16_t)strtoul(p, NULL, 10);
	n = 0;
	for (char *p = strtok_r(roots, ",", &save); p != NULL; p = strtok_r(NULL, ",", &save))
		(void)snprintf(m.roots[n++], sizeof(m.roots[0]), "%s", p);
	return m;
}

static void
policy_say(struct view line, bool plain, int input)
{
	const struct msg_config_policy m = policy_of(line);
	auto_buf struct buf body;
	const int fd = plain ? input : memory_file(line);

	buf_init(&body, IPC_MAX);
	msg_config_policy_put(&body, &m);
	say_fds(MSG_CONFIG_POLICY, buf_view(&body), &fd, 1);
}

static void
policies(struct msg_config_end *end)
{
	static uint8_t text[16384];
	int fd = openat(FD_CONFIG_INPUT, "text", O_RDONLY | O_CLOEXEC);
	struct msg_config_policies m = {0};
	auto_buf struct buf body;
	struct err err;
	size_t n = 0;

	if (fd >= 0 && fd_read_upto(fd, text, sizeof(text), &n, &err) < 0)
		_exit(1);
	struct view v = view_of(text, n);
	const bool few = view_starts(v, "few"), plain = view_starts(v, "plain");

	if (view_starts(v, "faults")) {
		fault(3, 7, "the first fault");
		end->faults = 1;
		return;
	}
	if (view_starts(v, "die"))
		_exit(1);
	for (size_t i = 0; i < n; i++)
		m.policies += text[i] == '\n';
	m.policies += few;
	const int all = memory_file(v);

	buf_init(&body, IPC_MAX);
	msg_config_policies_put(&body, &m);
	say_fds(MSG_CONFIG_POLICIES, buf_view(&body), &all, 1);
	for (size_t from = 0, i = 0; i < n; i++)
		if (text[i] == '\n') {
			policy_say(view_of(text + from, i - from), plain, fd);
			from = i + 1;
		}
	if (view_starts(v, "more"))
		policy_say(view_str("other - 1"), plain, fd);
}

static void
settings(struct msg_config_end *end)
{
	static uint8_t text[65536];
	struct err err;
	size_t n = 0;

	if (fd_read_upto(FD_CONFIG_INPUT, text, sizeof(text), &n, &err) < 0)
		_exit(1);
	if (view_starts(view_of(text, n), "faults")) {
		fault(3, 7, "the first fault");
		fault(9, 1, "the second fault");
		end->faults = 2;
	} else if (view_starts(view_of(text, n), "die")) {
		_exit(1);
	} else {
		say(MSG_CONFIG_SETTINGS, view_of(text, n));
	}
}

int
main(int argc, char **argv)
{
	struct msg_config_end end = {0};
	auto_buf struct buf body;

	if (argc == 2 && strcmp(argv[1], "operations") == 0)
		operations(&end);
	else if (argc == 2 && strcmp(argv[1], "policies") == 0)
		policies(&end);
	else
		settings(&end);
	buf_init(&body, IPC_MAX);
	msg_config_end_put(&body, &end);
	say(MSG_CONFIG_END, buf_view(&body));
	return 0;
}
