/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demilune-config: reads a configuration from descriptor 3, tells faults or the compiled form on descriptor 4, ends. Without an argument the
 * configuration is demilune.yaml; with `operations` it is the directory of the catalogue, or one file of it; with `policies` the directory of
 * policies, or one file, which is the policy `policy` or with `policies NAME.yaml` NAME. Started by the supervisor, by `demilune check`, `demilune operation
 * check` and the commands of `demilune policy`.
 */
#include "config/compile.h"
#include "config/confine.h"
#include "config/input.h"
#include "config/operations.h"
#include "config/policies.h"
#include "lib/action/operation.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/ipc/datagram.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>

enum { TEXT_MAX_BYTES = 256 << 10, SAY_MS = 10000 };

static void
say_with(enum msg_type type, const struct buf *body, const int *fds, size_t nfds)
{
	auto_buf struct buf packed;
	struct pollfd room = {.fd = FD_CONFIG_SUPERVISOR, .events = POLLOUT};
	struct err err = {0};
	int r;

	buf_init(&packed, IPC_MAX);
	ipc_pack(&packed, type, 0, buf_view(body));
	must(buf_check(&packed) == 0);
	do
		r = ipc_write(FD_CONFIG_SUPERVISOR, buf_view(&packed), fds, nfds, &err);
	while (r == -EAGAIN && poll(&room, 1, SAY_MS) == 1);
	if (r < 0)
		log_exit(1, "cannot tell the supervisor: %s", err.text);
}

static void
say(enum msg_type type, const struct buf *body)
{
	say_with(type, body, NULL, 0);
}

static void
say_fault_of(void *ctx, const char *file, struct place at, const char *text)
{
	struct msg_config_fault m = {.line = at.line, .column = at.column};
	auto_buf struct buf body;

	(void)ctx;
	(void)snprintf(m.file, sizeof(m.file), "%s", file);
	(void)snprintf(m.text, sizeof(m.text), "%s", text);
	buf_init(&body, sizeof(m) + 64);
	msg_config_fault_put(&body, &m);
	say(MSG_CONFIG_FAULT, &body);
}

static void
say_fault(void *ctx, struct place at, const char *text)
{
	say_fault_of(ctx, "", at, text);
}

static void
say_end(unsigned faults)
{
	struct msg_config_end end = {.faults = faults};
	auto_buf struct buf body;

	buf_init(&body, 64);
	msg_config_end_put(&body, &end);
	say(MSG_CONFIG_END, &body);
}

static void
settings(void)
{
	static uint8_t text[TEXT_MAX_BYTES + 1];
	struct msg_config_settings m = {0};
	const struct document_sink sink = {.on_fault = say_fault};
	auto_buf struct buf body;
	struct err err = {0};
	unsigned faults = 1;
	size_t n = 0;

	if (confine(&err) < 0)
		log_exit(1, "%s", err.text);
	if (fd_read_upto(FD_CONFIG_INPUT, text, sizeof(text), &n, &err) < 0)
		log_exit(1, "the configuration: %s", err.text);
	if (n > TEXT_MAX_BYTES)
		say_fault(NULL, (struct place){1, 1},
			"the file is larger than 256 KiB; it is not a configuration");
	else
		faults = compile(view_of(text, n), &m.settings, &sink);
	buf_init(&body, 8192);
	if (faults == 0) {
		msg_config_settings_put(&body, &m);
		say(MSG_CONFIG_SETTINGS, &body);
	}
	say_end(faults);
}

/* A memory file that is filled and sealed once everything is right; made before there is a jail. */
static int
memory_file(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		log_exit(1, "there is no memory file for the %s", name);
	return fd;
}

/* From then on nobody can change it, not even who holds the descriptor. */
static void
fill_and_seal(int fd, const struct buf *bytes)
{
	struct err err = {0};

	if (fd_write_all(fd, bytes->p, bytes->n, &err) < 0 || lseek(fd, 0, SEEK_SET) < 0 ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) <
			0)
		log_exit(1, "what was compiled cannot be sealed");
}

/* catalogue_read() is what the receivers read with: what it refuses is not sent. */
static void
say_catalogue(const struct operations *o, const int fds[static 2])
{
	struct msg_config_catalogue m = {.operations = o->noperations, .origins = o->norigins};
	struct catalogue read = {0};
	auto_buf struct buf body;
	struct err err = {0};

	fill_and_seal(fds[0], &o->catalogue);
	fill_and_seal(fds[1], &o->origins);
	if (catalogue_read(fds[0], &read, &err) < 0)
		log_exit(1, "the compiled operations: %s", err.text);
	must(read.n == o->noperations);
	memcpy(m.catalogue, read.digest, sizeof(m.catalogue));
	catalogue_done(&read);
	buf_init(&body, 256);
	msg_config_catalogue_put(&body, &m);
	say_with(MSG_CONFIG_CATALOGUE, &body, fds, 2);
}

static void
operations(void)
{
	static struct inputs in;
	struct operations_file files[OPERATIONS_FILES_MAX];
	const struct operations_sink sink = {.on_fault = say_fault_of};
	const int fds[] = {memory_file("catalogue"), memory_file("origins")};
	auto_operations struct operations compiled = {.noperations = 0};
	struct err err = {0};
	unsigned faults;

	if (inputs_open(FD_CONFIG_INPUT, &in, &sink, &err) < 0 || confine(&err) < 0 ||
		inputs_read(&in, &sink, &err) < 0)
		log_exit(1, "%s", err.text);
	for (size_t i = 0; i < in.n; i++)
		files[i] = (struct operations_file){
			in.file[i].name, view_of(in.file[i].text, in.file[i].n)};
	/* A file that was refused may hold what the others name: they are looked at when all are there. */
	faults = in.faults;
	if (faults == 0)
		faults = operations_compile(files, in.n, &compiled, &sink);
	if (faults == 0)
		say_catalogue(&compiled, fds);
	say_end(faults);
	inputs_done(&in);
}

/* ---- policies ---- */

static void
say_policies_head(uint32_t n, int fd)
{
	struct msg_config_policies m = {.policies = n};
	auto_buf struct buf body;

	buf_init(&body, 64);
	msg_config_policies_put(&body, &m);
	say_with(MSG_CONFIG_POLICIES, &body, &fd, 1);
}

static void
say_policy(const struct policy *p, int fd)
{
	struct msg_config_policy m = {.ipv6 = p->ipv6, .capture = p->capture};
	auto_buf struct buf body;
	size_t roots = 0;

	memcpy(m.policy, p->digest, sizeof(m.policy));
	memcpy(m.name, p->name.p, p->name.n);
	memcpy(m.ports, p->ports, sizeof(m.ports));
	for (size_t i = 0; i < p->nrules; i++) {
		struct view name = p->rule[i].roots;
		size_t k = 0;

		m.brokered = m.brokered || p->rule[i].kind == RULE_KIND_BROKERED;
		while (k < roots && !view_is(name, m.roots[k]))
			k++;
		if (name.n > 0 && k == roots)
			memcpy(m.roots[roots++], name.p, name.n);
	}
	buf_init(&body, 4096);
	msg_config_policy_put(&body, &m);
	say_with(MSG_CONFIG_POLICY, &body, &fd, 1);
}

/* policies_load() and policy_load() are what the receivers read with: what they refuse is not sent. */
static void
say_policies(const struct policies_compiled *c, const int *fds)
{
	auto_buf struct buf all;
	struct policies read = {.n = 0};
	struct policy *one = calloc(1, sizeof(*one));
	struct err err = {0};

	must(one != NULL);
	buf_init(&all, POLICIES_MAX * (4 + POLICY_BYTES_MAX));
	for (size_t i = 0; i < c->n; i++)
		policies_put(&all, buf_view(&c->row[i].document));
	must(buf_check(&all) == 0);
	fill_and_seal(fds[0], &all);
	if (policies_load(fds[0], &read, &err) < 0)
		log_exit(1, "the compiled policies: %s", err.text);
	must(read.n == c->n);
	say_policies_head((uint32_t)c->n, fds[0]);
	for (size_t i = 0; i < c->n; i++) {
		auto_free uint8_t *bytes = NULL;

		fill_and_seal(fds[i + 1], &c->row[i].document);
		if (policy_load(fds[i + 1], &bytes, one, &err) < 0)
			log_exit(1, "the compiled policy %s: %s", c->row[i].name, err.text);
		must(memcmp(one->digest, read.row[i].digest, SHA256_BYTES) == 0);
		say_policy(one, fds[i + 1]);
	}
	policies_done(&read);
	free(one);
}

/* Of the one file: its place is known to whoever gave it. */
static void
say_fault_alone(void *ctx, const char *file, struct place at, const char *text)
{
	(void)file;
	say_fault_of(ctx, "", at, text);
}

/* name: of the one file. */
static void
policies(const char *name)
{
	static struct inputs in;
	static struct policies_compiled compiled;
	struct operations_file files[OPERATIONS_FILES_MAX];
	struct operations_sink sink = {.on_fault = say_fault_of};
	int fds[POLICIES_MAX + 1];
	struct err err = {0};
	unsigned faults;
	bool one;

	if (inputs_open(FD_CONFIG_INPUT, &in, &sink, &err) < 0)
		log_exit(1, "%s", err.text);
	one = in.n == 1 && in.file[0].name[0] == '\0';
	if (one)
		sink.on_fault = say_fault_alone;
	else if (name != NULL)
		log_exit(1, "the files of a directory have their own names");
	for (size_t i = 0; i <= in.n; i++)
		fds[i] = memory_file("policies");
	if (confine(&err) < 0 || inputs_read(&in, &sink, &err) < 0)
		log_exit(1, "%s", err.text);
	for (size_t i = 0; i < in.n; i++)
		files[i] = (struct operations_file){!one           ? in.file[i].name
						    : name != NULL ? name
								   : "policy.yaml",
			view_of(in.file[i].text, in.file[i].n)};
	faults = in.faults;
	if (faults == 0)
		faults = policies_compile(files, in.n, &compiled, &sink);
	if (faults == 0)
		say_policies(&compiled, fds);
	say_end(faults);
	policies_compiled_done(&compiled);
	inputs_done(&in);
}

int
main(int argc, char **argv)
{
	log_name("config");
	if (argc == 1)
		settings();
	else if (argc == 2 && strcmp(argv[1], "operations") == 0)
		operations();
	else if ((argc == 2 || argc == 3) && strcmp(argv[1], "policies") == 0)
		policies(argc == 3 ? argv[2] : NULL);
	else
		log_exit(1, "no such argument");
	return 0;
}
