/* SPDX-License-Identifier: Apache-2.0 */
/* The header block of POSIX ustar, for reader.c and writer.c. */
#pragma once

#include "lib/ustar/ustar.h"

struct ustar_block {
	char name[100];
	char mode[8], uid[8], gid[8];
	char size[12], mtime[12];
	char checksum[8];
	char type;
	char link[100];
	char magic[6];   /* "ustar" NUL */
	char version[2]; /* "00" */
	char user[32], group[32];
	char major[8], minor[8];
	char prefix[155];
	char rest[12];
};
_Static_assert(sizeof(struct ustar_block) == USTAR_BLOCK, "a ustar header is one block");

/* Sum of all bytes with the checksum field as blanks. */
uint32_t ustar_checksum(const uint8_t block[static USTAR_BLOCK]);
