/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Templates: images whose digest was checked, each mounted once. A sandbox's root is a copy of that mount, shown
 * through the sandbox's user namespace.
 */
#pragma once

#include "lib/base/list.h"
#include "lib/base/sha256.h"
#include "supervisor/place.h"

#include <ev.h>

struct template
{
	struct link link;
	struct templates *all; /* borrowed */
	uint8_t digest[SHA256_BYTES];
	char name[24]; /* of its directory on the stage; empty while it is not mounted */
	uint64_t size_bytes;
	struct places places;
	char wanted[PLACE_MAX]
		   [PLACE_BYTES]; /* places as the engine named them, while it is checked */
	uint64_t tag;             /* of the request that is answered when it is checked */
	int image;                /* owned; -1 when it is mounted */
	int pidfd;                /* owned: the process that reads the image; -1 else */
	ev_io checked;
};

struct templates {
	struct ev_loop *loop; /* borrowed */
	struct link list;     /* of struct template, the one used last at the end */
	size_t n;
	int dir;   /* owned: where images lie */
	int stage; /* borrowed: where they are mounted */
	/* err is NULL when t can be used; else t is freed after the call. */
	void (*on_done)(void *owner, const struct template *t, uint64_t tag, const struct err *err);
	void *owner; /* borrowed */
};

void templates_init(struct templates *all, struct ev_loop *loop, int stage);
void templates_done(struct templates *all);

/* The mounted template with this digest, or NULL. */
struct template *template_find(struct templates *all, const uint8_t digest[SHA256_BYTES]);

/*
 * Checks in a process of its own, then mounts; on_done tells. 0 when that was begun or is done already (then it was
 * told), or negative.
 */
int template_prepare(struct templates *all, const uint8_t digest[SHA256_BYTES],
	const char (*places)[PLACE_BYTES], uint64_t tag, struct err *err) MUST_CHECK;

/* A detached mount of it for one sandbox; owned by the caller. */
int template_copy(const struct template *t, int userns, struct err *err) MUST_CHECK;
