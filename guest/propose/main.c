/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demilune-propose OPERATION ARGUMENTS: asks for an action and prints the id of the proposal, nothing else. Under the name
 * demilune-read: asks for the answer of a read and prints it. ARGUMENTS is a JSON object, or "-" for standard input.
 * Nothing is checked here that matters: whatever runs in the sandbox may write to the socket itself.
 */
#include "lib/base/attr.h"
#include "lib/base/buf.h"
#include "lib/base/fd.h"
#include "lib/base/propose_bounds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { EXIT_REFUSED = 1, EXIT_USAGE = 2, EXIT_NO_WAY = 3 };

static bool reads; /* set by main() once: the name we were called by */

NORETURN static void
usage(void)
{
	(void)fprintf(stderr,
		"usage: %s OPERATION ARGUMENTS [--note TEXT]\n"
		"  ARGUMENTS is a JSON object, or - for standard input.\n"
		"  Socket: one JSON document {\"operation\",\"arguments\",\"note\"}, then the end "
		"of writing; one JSON object comes back.\n",
		reads ? "demilune-read" : "demilune-propose");
	exit(EXIT_USAGE);
}

/* A JSON string of any bytes; what is no UTF-8 is refused by the host. */
static void
put_string(struct buf *b, const char *s)
{
	buf_add_byte(b, '"');
	for (; *s != '\0'; s++) {
		uint8_t c = (uint8_t)*s;

		if (c == '"' || c == '\\')
			buf_addf(b, "\\%c", c);
		else if (c < 0x20)
			buf_addf(b, "\\u%04x", c);
		else
			buf_add_byte(b, c);
	}
	buf_add_byte(b, '"');
}

static void
put_arguments(struct buf *b, const char *arguments)
{
	static uint8_t room[PROPOSE_TEXT_BYTES + 1];
	struct err err = {0};
	size_t n = 0;

	if (strcmp(arguments, "-") != 0) {
		buf_add_str(b, arguments);
		return;
	}
	if (fd_read_upto(STDIN_FILENO, room, sizeof(room), &n, &err) < 0) {
		(void)fprintf(stderr, "standard input: %s\n", err.text);
		exit(EXIT_USAGE);
	}
	buf_add(b, room, n);
}

static int
dial(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(
		at.sun_path, sizeof(at.sun_path), "/run/demilune/%s", reads ? "read" : "propose");
	if (fd < 0 || connect(fd, (const struct sockaddr *)&at, sizeof(at)) < 0) {
		(void)fprintf(stderr, "%s: %s; the template needs /run among its places\n",
			at.sun_path, strerror(errno));
		exit(EXIT_NO_WAY);
	}
	return fd;
}

/* One connection is one request. */
static void
exchange(struct view request, struct buf *answer)
{
	auto_fd int fd = dial();
	uint8_t *room;
	ssize_t n;

	while (request.n > 0 && (n = send(fd, request.p, request.n, MSG_NOSIGNAL)) > 0)
		request = view_skip(request, (size_t)n);
	(void)shutdown(fd, SHUT_WR); /* one that is gone shows in the answer */
	while ((room = buf_room(answer, 4096)) != NULL && (n = read(fd, room, 4096)) > 0)
		buf_grew(answer, (size_t)n);
}

/* What stands between the two, when the answer is exactly that: the host writes without spaces and in one order. */
static bool
between(struct view answer, const char *before, const char *after, struct view *ret)
{
	size_t b = strlen(before), a = strlen(after);

	if (answer.n < b + a || !view_starts(answer, before) ||
		!view_is(view_skip(answer, answer.n - a), after))
		return false;
	*ret = view_of(answer.p + b, answer.n - b - a);
	return true;
}

static int
tell(struct view answer)
{
	struct view part;

	if (between(answer, "{\"proposal\":\"", "\",\"duplicate\":false}\n", &part) ||
		between(answer, "{\"proposal\":\"", "\",\"duplicate\":true}\n", &part) ||
		between(answer, "{\"answer\":", "}\n", &part)) {
		(void)fwrite(part.p, 1, part.n, stdout);
		(void)putchar('\n');
		return 0;
	}
	if (answer.n == 0)
		(void)fprintf(stderr, "no answer\n");
	else
		(void)fwrite(answer.p, 1, answer.n, stderr);
	return EXIT_REFUSED;
}

int
main(int argc, char **argv)
{
	auto_buf struct buf request, answer;
	const char *name = argc > 0 ? argv[0] : "", *slash = strrchr(name, '/');
	const char *note = NULL;
	int code;

	reads = strcmp(slash != NULL ? slash + 1 : name, "demilune-read") == 0;
	if (argc == 5 && strcmp(argv[3], "--note") == 0)
		note = argv[4];
	else if (argc != 3)
		usage();
	buf_init(&request, PROPOSE_TEXT_BYTES + 1);
	buf_init(&answer, PROPOSE_ANSWER_BYTES + 1);
	buf_add_str(&request, "{\"operation\":");
	put_string(&request, argv[1]);
	buf_add_str(&request, ",\"arguments\":");
	put_arguments(&request, argv[2]);
	if (note != NULL) {
		buf_add_str(&request, ",\"note\":");
		put_string(&request, note);
	}
	buf_add_byte(&request, '}');
	if (buf_check(&request) < 0) {
		(void)fprintf(stderr, "a request has at most 32 KiB\n");
		return EXIT_REFUSED;
	}
	exchange(buf_view(&request), &answer);
	code = tell(buf_view(&answer));
	return fflush(stdout) == 0 ? code : EXIT_REFUSED;
}
