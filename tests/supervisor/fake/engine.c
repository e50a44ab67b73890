/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for demilune-engine: gives its edges to the test, which plays the engine, and lives until the test
 * closes or the supervisor kills it.
 */
#include "lib/base/attr.h"
#include "proto_gen.h"

#include "fake/pass.h"

#include <stdio.h>
#include <sys/un.h>

int
main(void)
{
	const int fds[] = {FD_ENGINE_SUPERVISOR, FD_ENGINE_API, FD_ENGINE_BROKER,
		FD_ENGINE_CATALOGUE, FD_ENGINE_POLICIES};
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char byte;

	(void)snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/engine/test.sock",
		FD_ENGINE_STATE);
	if (connect(sock, (struct sockaddr *)&at, sizeof(at)) < 0 ||
		pass_send(sock, 'e', fds, ARRAY_LEN(fds)) < 0)
		return 1;
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		(void)close(fds[i]); /* the test has them now */
	(void)!read(sock, &byte, 1);
	return 3;
}
