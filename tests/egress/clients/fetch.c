/* SPDX-License-Identifier: Apache-2.0 */
/* For musl, static: its resolver asks what /etc/resolv.conf names, A and AAAA at once, and takes REFUSED for a failure. Plain HTTP. */
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
	char text[4096];
	int fd, code, n;
	ssize_t got;

	if (argc != 3)
		return 2;
	code = getaddrinfo(argv[1], "80", &hints, &found);
	if (code != 0) {
		fprintf(stderr, "%s\n", gai_strerror(code));
		return 1;
	}
	fd = socket(found->ai_family, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) < 0) {
		perror(argv[1]);
		return 1;
	}
	n = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n",
		argv[2], argv[1]);
	if (write(fd, text, (size_t)n) != n)
		return 1;
	while ((got = read(fd, text, sizeof(text))) > 0)
		fwrite(text, 1, (size_t)got, stdout);
	return 0;
}
