/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for demilune-config: the "configuration file" is the packed body of CONFIG_SETTINGS, or one of the words
 * that make it misbehave.
 */
#include "lib/base/fd.h"
#include "lib/ipc/datagram.h"

#include <stdio.h>

static void
say(enum msg_type type, struct view body)
{
	auto_buf struct buf packed;
	struct err err;

	buf_init(&packed, IPC_MAX);
	ipc_pack(&packed, type, 0, body);
	if (ipc_write(FD_CONFIG_SUPERVISOR, buf_view(&packed), NULL, 0, &err) < 0)
		_exit(1);
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

int
main(void)
{
	static uint8_t text[65536];
	struct msg_config_end end = {0};
	auto_buf struct buf body;
	struct err err;
	size_t n = 0;

	if (fd_read_upto(FD_CONFIG_INPUT, text, sizeof(text), &n, &err) < 0)
		return 1;
	buf_init(&body, IPC_MAX);
	if (view_starts(view_of(text, n), "faults")) {
		fault(3, 7, "the first fault");
		fault(9, 1, "the second fault");
		end.faults = 2;
	} else if (view_starts(view_of(text, n), "die")) {
		return 1;
	} else {
		say(MSG_CONFIG_SETTINGS, view_of(text, n));
	}
	msg_config_end_put(&body, &end);
	say(MSG_CONFIG_END, buf_view(&body));
	return 0;
}
