/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's own rights; see confine.h and proto/caps.def. Called by main.c when everything is set up. */
#include "supervisor/confine.h"

#include "lib/jail/jail.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static const uint64_t keep = 0
#define KEEP(name, why) | 1ULL << CAP_##name
#include "proto/caps.def"
#undef KEEP
	;

/* Reads back what the kernel has, and tries what must be refused. */
static int
prove(struct err *err)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};
	uint64_t have;

	if (syscall(SYS_capget, &head, data) < 0)
		return err_errno(err, "reading our capabilities");
	have = (uint64_t)data[1].permitted << 32 | data[0].permitted;
	if (have != keep)
		return err_set(err, -EPERM, "our capabilities are %llx, not %llx: %s",
			(unsigned long long)have, (unsigned long long)keep,
			"the host gives too few, or dropping failed");
	for (int cap = 0; cap < 64; cap++) {
		int present = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);

		if (present >= 0 && (present == 1) != ((keep >> cap & 1) == 1))
			return err_set(err, -EPERM, "capability %d in the bounding set is %d", cap,
				present);
	}
	return 0;
}

int
confine(struct err *err)
{
	int r = jail_caps_drop_to(keep, err);

	return r == 0 ? prove(err) : r;
}
