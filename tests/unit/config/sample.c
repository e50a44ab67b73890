/* SPDX-License-Identifier: Apache-2.0 */
/* See sample.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/fd.h"
#include "sample.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *
file_text(const char *name)
{
	static char text[TEXT_BYTES];
	char path[512];
	struct err err = {0};
	size_t n = 0;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", HERE, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fail_msg("%s cannot be opened", path);
	assert_int_equal(fd_read_upto(fd, text, sizeof(text) - 1, &n, &err), 0);
	(void)close(fd);
	text[n] = '\0';
	return text;
}

char *
file_changed(const char *name, const char *from, const char *to)
{
	const char *base = file_text(name), *at = strstr(base, from);
	size_t n = strlen(base) + strlen(to) + 1;
	char *text = malloc(n);

	assert_non_null(text);
	if (at == NULL || strstr(at + 1, from) != NULL)
		fail_msg("stands not once in %s: %s", name, from);
	(void)snprintf(text, n, "%.*s%s%s", (int)(at - base), base, to, at + strlen(from));
	return text;
}
