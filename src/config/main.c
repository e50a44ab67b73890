/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demilune-config: reads one configuration file from descriptor 3, tells faults or settings on
 * descriptor 4, ends. Started by the supervisor and by `demilune check`.
 */
#include "config/compile.h"
#include "config/confine.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/ipc/datagram.h"

#include <stdio.h>

enum { TEXT_MAX_BYTES = 256 << 10 };

static void
say(enum msg_type type, const struct buf *body)
{
	auto_buf struct buf packed;
	struct err err = {0};

	buf_init(&packed, IPC_MAX);
	ipc_pack(&packed, type, 0, buf_view(body));
	must(buf_check(&packed) == 0);
	if (ipc_write(FD_CONFIG_SUPERVISOR, buf_view(&packed), NULL, 0, &err) < 0)
		log_exit(1, "cannot tell the supervisor: %s", err.text);
}

static void
say_fault(void *ctx, struct place at, const char *text)
{
	struct msg_config_fault m = {.line = at.line, .column = at.column};
	auto_buf struct buf body;

	(void)ctx;
	(void)snprintf(m.text, sizeof(m.text), "%s", text);
	buf_init(&body, sizeof(m) + 64);
	msg_config_fault_put(&body, &m);
	say(MSG_CONFIG_FAULT, &body);
}

int
main(void)
{
	static uint8_t text[TEXT_MAX_BYTES + 1];
	struct msg_config_settings m = {0};
	struct msg_config_end end = {0};
	const struct compile_sink sink = {.on_fault = say_fault};
	auto_buf struct buf body;
	struct err err = {0};
	size_t n = 0;

	log_name("config");
	if (confine(&err) < 0)
		log_exit(1, "%s", err.text);
	if (fd_read_upto(FD_CONFIG_INPUT, text, sizeof(text), &n, &err) < 0)
		log_exit(1, "the configuration: %s", err.text);
	if (n > TEXT_MAX_BYTES) {
		say_fault(NULL, (struct place){1, 1},
			"the file is larger than 256 KiB; it is not a configuration");
		end.faults = 1;
	} else {
		end.faults = compile(view_of(text, n), &m.settings, &sink);
	}
	buf_init(&body, 8192);
	if (end.faults == 0) {
		msg_config_settings_put(&body, &m);
		say(MSG_CONFIG_SETTINGS, &body);
		buf_clear(&body);
	}
	msg_config_end_put(&body, &end);
	say(MSG_CONFIG_END, &body);
	return 0;
}
