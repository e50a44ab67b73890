/* SPDX-License-Identifier: Apache-2.0 */
/* What leaves the broker as text goes through here: whatever has a secret in it is dropped. */
#include "broker/broker.h"

#include "lib/base/log.h"

#include <stdarg.h>

static const char dropped[] = "(left out: it had a credential in it)";

void
broker_clean(struct broker *b, struct err *err)
{
	if (vault_leaks(b->vault, view_str(err->text)))
		(void)snprintf(err->text, sizeof(err->text), "%s", dropped);
	/* Bytes of others that are no text, libcurl's messages among them. */
	for (char *c = err->text; *c != '\0'; c++)
		if ((unsigned char)*c < 0x20 || (unsigned char)*c > 0x7e)
			*c = '?';
}

void
broker_log(struct broker *b, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	log_line("%s", vault_leaks(b->vault, view_str(line)) ? dropped : line);
}

void
tell_refused(struct broker *b, struct ask ask, enum denial denial, const char *text)
{
	TELL(b, ask, BROKER_REFUSED, broker_refused, {.denial = denial, .text = view_str(text)});
}
