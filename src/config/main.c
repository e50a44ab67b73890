/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demilune-config: reads a configuration from descriptor 3, tells faults or the compiled form on descriptor 4, ends. Without an argument the
 * configuration is demilune.yaml; with `operations` it is the directory of the catalogue, or one file of it. Started by the supervisor, by
 * `demilune check` and by `demilune operation check`.
 */
#include "config/compile.h"
#include "config/confine.h"
#include "config/input.h"
#include "config/operations.h"
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
		log_exit(1, "the compiled operations cannot be sealed");
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

int
main(int argc, char **argv)
{
	log_name("config");
	if (argc == 1)
		settings();
	else if (argc == 2 && strcmp(argv[1], "operations") == 0)
		operations();
	else
		log_exit(1, "no such argument");
	return 0;
}
