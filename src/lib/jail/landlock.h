/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock's binary interface, as far as we use it (ABI 6), with our own names: the headers of the oldest
 * system we build on know less than the newest kernel we run on. Used by landlock.c.
 */
#pragma once

#include <stdint.h>

#define LL_EXECUTE     (1ull << 0)
#define LL_WRITE_FILE  (1ull << 1)
#define LL_READ_FILE   (1ull << 2)
#define LL_READ_DIR    (1ull << 3)
#define LL_REMOVE_DIR  (1ull << 4)
#define LL_REMOVE_FILE (1ull << 5)
#define LL_MAKE_DIR    (1ull << 7)
#define LL_MAKE_REG    (1ull << 8)
#define LL_MAKE_SOCK   (1ull << 9)
#define LL_MAKE_SYM    (1ull << 12)
#define LL_REFER       (1ull << 13) /* ABI 2: link and rename between directories */
#define LL_TRUNCATE    (1ull << 14) /* ABI 3 */

#define LL_FS_1 ((1ull << 13) - 1)
#define LL_FS_2 ((1ull << 14) - 1)
#define LL_FS_3 ((1ull << 15) - 1)
#define LL_FS_5 ((1ull << 16) - 1) /* ioctl on devices */

#define LL_NET_4   3ull /* bind and connect TCP */
#define LL_SCOPE_6 3ull /* abstract Unix sockets, signals */

struct ll_ruleset {
	uint64_t fs, net, scoped;
};
_Static_assert(sizeof(struct ll_ruleset) == 24, "struct landlock_ruleset_attr");

struct ll_beneath {
	uint64_t allowed;
	int32_t fd;
} __attribute__((packed));
_Static_assert(sizeof(struct ll_beneath) == 12, "struct landlock_path_beneath_attr");

#define LL_CONNECT_TCP (1ull << 1) /* ABI 4 */

struct ll_port {
	uint64_t allowed, port; /* host byte order */
};
_Static_assert(sizeof(struct ll_port) == 16, "struct landlock_net_port_attr");

enum { LL_CREATE_VERSION = 1, LL_RULE_BENEATH = 1, LL_RULE_PORT = 2 };
