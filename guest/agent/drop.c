/* SPDX-License-Identifier: Apache-2.0 */
/* Privileges; see drop.h. */
#include "drop.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(cap) (1ull << (cap))

static int
result(long r)
{
	return r < 0 ? -errno : 0;
}

static int
caps_set(uint64_t mask)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {
		{.effective = (uint32_t)mask, .permitted = (uint32_t)mask},
		{.effective = (uint32_t)(mask >> 32), .permitted = (uint32_t)(mask >> 32)},
	};

	return result(syscall(SYS_capset, &head, data));
}

static int
caps_get(uint64_t *ret_any, uint64_t *ret_permitted)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};
	uint64_t permitted, effective, inheritable;

	if (syscall(SYS_capget, &head, data) < 0)
		return -errno;
	permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
	effective = data[0].effective | (uint64_t)data[1].effective << 32;
	inheritable = data[0].inheritable | (uint64_t)data[1].inheritable << 32;
	*ret_permitted = permitted;
	*ret_any = permitted | effective | inheritable;
	return 0;
}

int
drop_look(struct drop *ret)
{
	struct drop d = {.bounding = 0};
	uint64_t any = UINT64_MAX;
	int r = caps_get(&any, &d.permitted);

	if (r < 0)
		return r;
	for (int cap = 0; cap < 64; cap++) {
		int has = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);

		if (has < 0)
			break;
		if (has > 0)
			d.bounding |= BIT(cap);
	}
	d.groups = getgroups(0, NULL) > 0;
	*ret = d;
	return 0;
}

static int
ids_set(const struct drop *d, uid_t uid)
{
	int r = d->groups ? result(syscall(SYS_setgroups, 0, NULL)) : 0;

	if (r == 0)
		r = result(syscall(SYS_setresgid, uid, uid, uid));
	if (r == 0)
		r = result(syscall(SYS_setresuid, uid, uid, uid));
	return r;
}

/* The drop is of no use unless it can be seen to have taken. */
static int
prove(uid_t uid)
{
	uint64_t any = UINT64_MAX, permitted = 0;
	int r = caps_get(&any, &permitted);

	if (r < 0)
		return r;
	if (any != 0 || getuid() != uid || geteuid() != uid || getgid() != uid || getegid() != uid)
		return -EPERM;
	if (uid != 0 && syscall(SYS_setresuid, 0, 0, 0) == 0)
		return -EPERM;
	return 0;
}

int
drop_all(const struct drop *d, uid_t uid)
{
	const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
				   SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
				   SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
	int r;

	for (int cap = 0; cap < 64; cap++)
		if ((d->bounding & BIT(cap)) != 0 && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return -errno;
	/* Root without the right to give capabilities away cannot get them back by execve either. */
	if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0)
		return -errno;
	r = ids_set(d, uid);
	if (r == 0)
		r = caps_set(0);
	return r < 0 ? r : prove(uid);
}

int
drop_to_reaper(const struct drop *d, uid_t uid)
{
	const uint64_t needed = BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_SETPCAP) |
				BIT(CAP_KILL);
	int r;

	if ((d->permitted & needed) != needed)
		return -EPERM;
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return -errno;
	r = ids_set(d, REAPER_UID);
	if (r < 0)
		return r;
	/* What hidepid shows goes by these; they have no error, and nobody may signal or trace by them. */
	(void)syscall(SYS_setfsgid, uid);
	(void)syscall(SYS_setfsuid, uid);
	return caps_set(needed);
}

int
drop_to_kill(void)
{
	return caps_set(BIT(CAP_KILL));
}
