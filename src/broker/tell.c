/* SPDX-License-Identifier: Apache-2.0 */
/* What leaves the broker as text goes through here: whatever has a secret in it is dropped. */
#include "broker/broker.h"

#include "lib/base/log.h"

#include <stdarg.h>

static const char dropped[] = "(left out: it had a credential in it)";

const char *
broker_text(struct broker *b, const char *text, char room[static TEXT_BYTES])
{
	(void)snprintf(
		room, TEXT_BYTES, "%s", vault_leaks(b->vault, view_str(text)) ? dropped : text);
	/* Bytes of others that are no text, libcurl's messages among them, and letters that were cut. */
	for (char *c = room; *c != '\0'; c++)
		if ((unsigned char)*c < 0x20 || (unsigned char)*c > 0x7e)
			*c = '?';
	return room;
}

void
broker_clean(struct broker *b, struct err *err)
{
	char room[TEXT_BYTES];

	(void)snprintf(err->text, sizeof(err->text), "%.223s", broker_text(b, err->text, room));
}

void
broker_log(struct broker *b, const char *fmt, ...)
{
	char line[TEXT_BYTES], room[TEXT_BYTES];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	log_line("%s", broker_text(b, line, room));
}

void
tell_refused(struct broker *b, struct ask ask, enum denial denial, const char *text)
{
	char room[TEXT_BYTES];

	TELL(b, ask, BROKER_REFUSED, broker_refused,
		{.denial = denial, .text = view_str(broker_text(b, text, room))});
}
