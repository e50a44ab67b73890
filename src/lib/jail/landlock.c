/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock for the backend `kernel`: everything that the kernel can handle is handled,
 * and only the listed directories and ports are given back. Needs no privilege but no_new_privs.
 */
#include "lib/jail/jail.h"

#include "lib/jail/landlock.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static const struct {
	enum jail_access access;
	uint64_t rights;
} rights_of[] = {
	{JAIL_READ, LL_READ_FILE | LL_READ_DIR},
	{JAIL_WRITE, LL_WRITE_FILE | LL_TRUNCATE | LL_MAKE_REG | LL_REMOVE_FILE | LL_REFER},
	{JAIL_DIRS, LL_MAKE_DIR | LL_REMOVE_DIR | LL_REFER},
	{JAIL_SOCK, LL_MAKE_SOCK | LL_REMOVE_FILE},
	{JAIL_EXEC, LL_EXECUTE},
	{JAIL_LINKS, LL_MAKE_SYM},
};

#define ACCESS_ALL (JAIL_READ | JAIL_WRITE | JAIL_DIRS | JAIL_SOCK | JAIL_EXEC | JAIL_LINKS)

/* What a kernel of this ABI handles; *ret_size is how much of the structure it knows. */
static struct ll_ruleset
ruleset_of(long abi, size_t *ret_size)
{
	struct ll_ruleset r = {.fs = LL_FS_1};

	*ret_size = sizeof(r.fs);
	if (abi >= 2)
		r.fs = LL_FS_2;
	if (abi >= 3)
		r.fs = LL_FS_3;
	if (abi >= 4) {
		r.net = LL_NET_4;
		*ret_size = offsetof(struct ll_ruleset, scoped);
	}
	if (abi >= 5)
		r.fs = LL_FS_5;
	if (abi >= 6) {
		r.scoped = LL_SCOPE_6;
		*ret_size = sizeof(r);
	}
	return r;
}

static int
path_allow(int ruleset, uint64_t handled, const struct jail_path *p, struct err *err)
{
	struct ll_beneath rule = {.fd = p->fd};
	struct stat st;

	if (p->access == 0 || (p->access & ~(unsigned int)ACCESS_ALL) != 0)
		return err_set(
			err, -EINVAL, "a jail path names at least one access and no unknown one");
	if (fstat(p->fd, &st) != 0)
		return err_errno(err, "cannot look at a directory of the jail");
	if (!S_ISDIR(st.st_mode))
		return err_set(err, -ENOTDIR, "a jail path is a directory");
	for (size_t i = 0; i < ARRAY_LEN(rights_of); i++)
		if ((p->access & rights_of[i].access) != 0)
			rule.allowed |= rights_of[i].rights;
	rule.allowed &= handled;
	if (syscall(SYS_landlock_add_rule, ruleset, LL_RULE_BENEATH, &rule, 0) != 0)
		return err_errno(err, "cannot allow a directory in the jail");
	return 0;
}

static int
port_allow(int ruleset, uint16_t port, struct err *err)
{
	const struct ll_port rule = {.allowed = LL_CONNECT_TCP, .port = port};

	if (syscall(SYS_landlock_add_rule, ruleset, LL_RULE_PORT, &rule, 0) != 0)
		return err_errno(err, "cannot allow a port in the jail");
	return 0;
}

int
jail_landlock_all(const struct jail_path *paths, size_t n, const uint16_t *ports, size_t ports_n,
	struct err *err)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LL_CREATE_VERSION);
	struct ll_ruleset r;
	size_t size;
	int rc;

	if (abi < 1)
		return err_errno(
			err, "the kernel has no Landlock (CONFIG_SECURITY_LANDLOCK, lsm=landlock)");
	r = ruleset_of(abi, &size);
	auto_fd int fd = (int)syscall(SYS_landlock_create_ruleset, &r, size, 0);
	if (fd < 0)
		return err_errno(err, "cannot create a Landlock ruleset");
	for (size_t i = 0; i < n; i++)
		if ((rc = path_allow(fd, r.fs, &paths[i], err)) != 0)
			return rc;
	/* An older kernel has no rights of TCP to take away. */
	for (size_t i = 0; r.net != 0 && i < ports_n; i++)
		if ((rc = port_allow(fd, ports[i], err)) != 0)
			return rc;
	if (syscall(SYS_landlock_restrict_self, fd, 0) != 0)
		return err_errno(err, "cannot enter the Landlock ruleset");
	return 0;
}
