/* SPDX-License-Identifier: Apache-2.0 */
/* Wall-clock deadlines that go on while the machine sleeps: CLOCK_BOOTTIME, one timer descriptor for all. */
#pragma once

#include "lib/base/err.h"

#include <ev.h>
#include <stdint.h>

struct deadline {
	int fd; /* owned */
	ev_io due;
	void (*on_due)(void *owner);
	void *owner; /* borrowed */
};

int deadline_init(struct deadline *d, struct ev_loop *loop, void (*on_due)(void *), void *owner,
	struct err *err) MUST_CHECK;
void deadline_done(struct deadline *d, struct ev_loop *loop);

uint64_t deadline_now_ms(void);

/* on_due is called then, once; UINT64_MAX: never. */
void deadline_set(struct deadline *d, uint64_t at_ms);
