/* SPDX-License-Identifier: Apache-2.0 */
/* A name server of the tests, which answers by the first label of a name and writes down each question. */
#pragma once

#include "lib/base/attr.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { SERVER_PORT = 5300, QUESTIONS_MAX = 1024 };

struct question_log {
	int n;
	struct {
		char name[256]; /* as it came, in its cases */
		uint16_t type, id, port;
		bool tcp;
	} row[QUESTIONS_MAX];
};

/* Runs until it is killed. The log is shared memory, which only this process writes. */
NORETURN void name_server_run(struct question_log *log);
