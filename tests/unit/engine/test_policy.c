/* SPDX-License-Identifier: Apache-2.0 */
/* The policy table: right facts pass, and each single wrong value is seen by exactly its own row. */
#include "engine/policy.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define CAPS (UINT64_C(1) << 5 | UINT64_C(1) << 6 | UINT64_C(1) << 7 | UINT64_C(1) << 8)

static const struct limits limits = {.memory_bytes = 512 << 20,
	.disk_bytes = 1 << 20,
	.disk_inodes = 1000,
	.pids = 64,
	.cpu_milli = 500,
	.open_files = 128};

static struct wanted
wanted(void)
{
	return (struct wanted){.limits = limits,
		.template = {7},
		.uid_first = UINT32_C(1) << 31,
		.uid_slots = 4,
		.places = 2};
}

static struct facts
right(void)
{
	return (struct facts){.boundary = BOUNDARY_CONTAINER,
		.host_pid = 100,
		.uid_base = (UINT32_C(1) << 31) + 65536,
		.uid_count = 65536,
		.userns_owner = (UINT32_C(1) << 31) + 65536,
		.pending_signals = 4096,
		.namespaces_own = 127,
		.namespaces_owner_host = 126,
		.cap_permitted = CAPS,
		.cap_effective = CAPS,
		.cap_bounding = CAPS,
		.no_new_privs = 1,
		.seccomp_mode = 2,
		.root_read_only = 1,
		.mounts = 8,
		.mounts_writable = 4,
		.mounts_without_nodev = 2,
		.interfaces = 1,
		.cgroup_version = 2,
		.memory_bytes = limits.memory_bytes,
		.socket_bytes = limits.memory_bytes / 8,
		.disk_bytes = limits.disk_bytes,
		.disk_inodes = limits.disk_inodes,
		.pids = limits.pids,
		.cpu_milli = limits.cpu_milli,
		.open_files = limits.open_files,
		.template = {7}};
}

static void
test_right(void **state)
{
	struct wanted w = wanted();
	struct facts f = right();

	(void)state;
	assert_int_equal(policy_differences(&f, &w), 0);
	f.cap_permitted = f.cap_effective = f.cap_bounding = 0;
	f.cgroup_version = 1;
	f.root_idmapped = 1;
	f.uid_base = f.userns_owner = w.uid_first + 3 * 65536;
	assert_int_equal(policy_differences(&f, &w), 0);
}

/* One field, one value, one row. */
#define WRONG(field, value, row)                                                             \
	do {                                                                                 \
		struct wanted w = wanted();                                                  \
		struct facts f = right();                                                    \
		f.field = value;                                                             \
		if (policy_differences(&f, &w) != UINT64_C(1) << POLICY_##row)               \
			fail_msg(#field " = " #value " is not seen by " #row " alone: %#lx", \
				policy_differences(&f, &w));                                 \
		seen |= UINT64_C(1) << POLICY_##row;                                         \
	} while (0)

static void
test_wrong(void **state)
{
	uint64_t seen = 0;
	struct wanted shared = wanted();
	struct facts good = right();

	(void)state;
	WRONG(boundary, BOUNDARY_GVISOR, boundary);
	WRONG(host_pid, 0, host_pid);
	WRONG(host_pid, 1, host_pid);
	WRONG(uid_base, 0, uid_base);
	WRONG(uid_base, 1000, uid_base);
	WRONG(uid_base, (UINT32_C(1) << 31) - 1, uid_base);
	WRONG(uid_base, (UINT32_C(1) << 31) + 3 * 65536 + 1, uid_base);
	WRONG(uid_base, UINT32_MAX, uid_base);
	WRONG(uid_count, 1, uid_count);
	WRONG(uid_count, 65537, uid_count);
	for (uint32_t bit = 0; bit < 32; bit++) {
		WRONG(namespaces_own, 127 ^ (UINT32_C(1) << bit), namespaces_own);
		WRONG(namespaces_owner_host, 126 ^ (UINT32_C(1) << bit), namespaces_owner_host);
	}
	for (unsigned bit = 0; bit < 64; bit++) {
		WRONG(cap_permitted, CAPS ^ UINT64_C(1) << bit, cap_permitted);
		WRONG(cap_effective, CAPS ^ UINT64_C(1) << bit, cap_effective);
		WRONG(cap_bounding, CAPS ^ UINT64_C(1) << bit, cap_bounding);
		WRONG(cap_inheritable, UINT64_C(1) << bit, cap_inheritable);
		WRONG(cap_ambient, UINT64_C(1) << bit, cap_ambient);
	}
	WRONG(userns_owner, 0, userns_owner);
	WRONG(userns_owner, (UINT32_C(1) << 31), userns_owner);
	WRONG(pending_signals, 4097, pending_signals);
	WRONG(no_new_privs, 0, no_new_privs);
	WRONG(seccomp_mode, 0, seccomp_mode);
	WRONG(seccomp_mode, 1, seccomp_mode);
	WRONG(root_read_only, 0, root_read_only);
	WRONG(mounts_unexpected, 1, mounts_unexpected);
	WRONG(mounts_without_nosuid, 1, mounts_without_nosuid);
	WRONG(mounts_without_nodev, 3, mounts_without_nodev);
	WRONG(mounts_writable, 5, mounts_writable);
	WRONG(routes, 1, routes);
	WRONG(captured, 1, captured);
	WRONG(captured, 3, captured);
	WRONG(interfaces, 0, interfaces);
	WRONG(interfaces, 2, interfaces);
	WRONG(cgroup_version, 0, cgroup_version);
	WRONG(memory_bytes, 0, memory_bytes);
	WRONG(memory_bytes, UINT64_MAX, memory_bytes);
	WRONG(socket_bytes, limits.memory_bytes + 1, socket_bytes);
	WRONG(socket_bytes, UINT64_MAX, socket_bytes);
	WRONG(disk_bytes, (1 << 20) + 4096, disk_bytes);
	WRONG(disk_inodes, 0, disk_inodes);
	WRONG(pids, 65, pids);
	WRONG(cpu_milli, 501, cpu_milli);
	WRONG(open_files, 129, open_files);
	WRONG(template[31], 1, template);
	shared.uid_shared = true;
	assert_int_equal(policy_differences(&good, &shared), UINT64_C(1) << POLICY_uid_shared);
	seen |= UINT64_C(1) << POLICY_uid_shared;
	/* A row that no line above breaks would be a row that nobody tested. */
	assert_int_equal(seen, (UINT64_C(1) << POLICY_MAX) - 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_right),
		cmocka_unit_test(test_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
