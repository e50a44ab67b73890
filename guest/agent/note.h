/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PID 1 and a job's child say to each other on a SOCK_SEQPACKET pair: orders down, notes up. Both are
 * this program, so the structs travel as they are; PID 1 checks sizes and sets all the same, because a
 * child that works on the guest's files is the guest's neighbour.
 */
#pragma once

#include "proto_gen.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	CHILD_CONTROL_FD = 3, /* the child's end */
};

/* PID 1 to child: a signal for the command's process group, 0 = end everything. */
struct order {
	int32_t signal;
};

enum note_kind {
	NOTE_ENTRY = 1,
	NOTE_ENDED,
};

struct note {
	uint8_t kind;
	uint8_t end; /* enum job_end */
	uint8_t file_kind;
	uint8_t name_bytes;
	int32_t code;
	uint32_t mode;
	uint64_t cpu_us, memory_peak_bytes;
	uint64_t size_bytes;
	int64_t mtime;
	uint8_t name[255];
};

/* Sends to PID 1; a PID 1 that is gone ends the child. */
void note_send(const struct note *n);
