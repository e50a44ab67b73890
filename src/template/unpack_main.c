/* SPDX-License-Identifier: Apache-2.0 */
/* demilune-unpack; see unpack.h. Exit codes: 0 unpacked, 1 refused or failed, with a sentence. */
#include "template/unpack.h"

#include "lib/base/fd.h"

#include <stdio.h>

int
main(void)
{
	uint64_t stripped = 0;
	struct err err = {0};

	if (fd_close_from(UNPACK_TOP + 1, &err) < 0 || unpack_confine(UNPACK_TOP, &err) < 0 ||
		unpack(UNPACK_ARCHIVE, UNPACK_TOP, &stripped, &err) < 0) {
		(void)printf("%s\n", err.text);
		(void)fflush(stdout);
		return 1;
	}
	(void)printf("%llu\n", (unsigned long long)stripped);
	return fflush(stdout) == 0 ? 0 : 1;
}
