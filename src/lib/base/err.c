/* SPDX-License-Identifier: Apache-2.0 */
/* Formatting of errors; see err.h for the contract. */
#include "lib/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A sentence can quote input: only printable ASCII is kept, the rest shows as '?'. */
static void
make_printable(char *s)
{
	for (; *s != '\0'; s++)
		if ((unsigned char)*s < 0x20 || (unsigned char)*s > 0x7e)
			*s = '?';
}

int
err_set(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;

	must(code < 0);
	err->code = code;
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	make_printable(err->text);
	return code;
}

int
err_errno(struct err *err, const char *fmt, ...)
{
	int saved = errno != 0 ? errno : EIO;
	char what[160];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return err_set(err, -saved, "%s: %s", what, strerror(saved));
}

int
err_context(struct err *err, const char *fmt, ...)
{
	char old[sizeof(err->text)], what[96];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	memcpy(old, err->text, sizeof(old));
	(void)snprintf(err->text, sizeof(err->text), "%s: %.120s", what, old);
	make_printable(err->text);
	return err->code;
}
