/* SPDX-License-Identifier: Apache-2.0 */
/* The compiler of syscall lists: what it refuses, and the programs it makes, run here by a
   small interpreter for both architectures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/jail/gen/def.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>

#define ENDS "DEFAULT(KILL) FOREIGN(ERRNO, ENOSYS) "

static struct sock_filter program[DEF_INSNS_MAX];

/* Reads text, compiles it into program[]; the number of instructions or a negative code. */
static int
compile(const char *arch, struct view text, struct err *err)
{
	auto_free struct def *d = malloc(sizeof(*d));
	size_t n = 0;
	int rc;

	assert_non_null(d);
	if ((rc = def_init(d, arch, "t", err)) != 0 ||
		(rc = def_read_text(d, "t", text, ".", err)) != 0 ||
		(rc = def_check(d, err)) != 0 ||
		(rc = def_compile(d, program, ARRAY_LEN(program), &n, err)) != 0)
		return rc;
	return (int)n;
}

static uint32_t
run(size_t n, const struct seccomp_data *data)
{
	uint32_t a = 0;

	for (size_t pc = 0; pc < n; pc++) {
		const struct sock_filter *i = &program[pc];
		bool yes;

		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			assert_true(i->k + 4 <= sizeof(*data) && i->k % 4 == 0);
			memcpy(&a, (const char *)data + i->k, 4);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
		case BPF_JMP | BPF_JGE | BPF_K:
			yes = BPF_OP(i->code) == BPF_JEQ ? a == i->k : a >= i->k;
			pc += yes ? i->jt : i->jf;
			break;
		case BPF_RET | BPF_K:
			return i->k;
		default:
			fail_msg("instruction 0x%x", i->code);
		}
	}
	fail_msg("ran off the end");
	return 0;
}

static uint32_t
ask(size_t n, uint32_t arch, int nr, uint64_t a0, uint64_t a1)
{
	struct seccomp_data d = {.nr = nr, .arch = arch, .args = {a0, a1}};

	return run(n, &d);
}

static void
refuses_what_is_not_a_list(void **state UNUSED)
{
	static const struct {
		const char *text, *part;
	} bad[] = {
		{"", "names no DEFAULT"},
		{"DEFAULT(KILL)", "no FOREIGN"},
		{"FOREIGN(KILL)", "names no DEFAULT"},
		{ENDS "DEFAULT(KILL)", "one default"},
		{ENDS "FOREIGN(KILL)", "one default"},
		{"DEFAULT(KILL) FOREIGN(ALLOW)", "not a default"},
		{"DEFAULT(\"KILL\") FOREIGN(KILL)", "not a default"},
		{"DEFAULT(NONE) FOREIGN(KILL)", "not a default"},
		{"DEFAULT(ERRNO) FOREIGN(KILL)", "expected ','"},
		{"DEFAULT(ERRNO, 0) FOREIGN(KILL)", "1 to 4095"},
		{"DEFAULT(ERRNO, 4096) FOREIGN(KILL)", "1 to 4095"},
		{ENDS "ALLOW(reed)", "t:1: no syscall is called 'reed'"},
		{ENDS "\n\nALLOW(reed)", "t:3:"},
		{ENDS "ALLOW(read", "expected ')'"},
		{ENDS "ALLOW read", "expected '('"},
		{ENDS "ALLOW()", "name of a syscall"},
		{ENDS "ALLOW(0)", "name of a syscall"},
		{ENDS "ALLOW(read) trailing", "expected '('"},
		{ENDS "ALLOW(read, ARG(0) == 1)", "expected ')'"},
		{ENDS "ALLOW(read) ALLOW(read)", "decides this call already"},
		{ENDS "ALLOW(read) KILL_IF(read, ARG(0) == 1)", "decides this call already"},
		{ENDS "ALLOW_IF(read, ARG(0) == 1) KILL_IF(read, ARG(0) == 1)",
			"decides this call"},
		{ENDS "PERMIT(read)", "unknown row"},
		{ENDS "_IF(read, ARG(0) == 1)", "unknown row"},
		{ENDS "ERRNO(read)", "expected a number or a name"},
		{ENDS "ERRNO(ENOWHERE, read)", "expected a number or a name"},
		{ENDS "ALLOW_IF(read)", "expected ','"},
		{ENDS "ALLOW_IF(read, )", "expected ARG"},
		{ENDS "ALLOW_IF(read, ARG(6) == 1)", "expected ARG"},
		{ENDS "ALLOW_IF(read, ARG(-1) == 1)", "no list has"},
		{ENDS "ALLOW_IF(read, ARG(0) = 1)", "no list has"},
		{ENDS "ALLOW_IF(read, ARG(0) < 1)", "no list has"},
		{ENDS "ALLOW_IF(read, ARG(0) & 1 == 1)", "expected == or !="},
		{ENDS "ALLOW_IF(read, (ARG(0) & 1) == 2)", "never holds"},
		{ENDS "ALLOW_IF(read, (ARG(0) | 1) == 1)", "expected '&'"},
		{ENDS "ALLOW_IF(read, ARG(0) == 4294967296)", "32 bits"},
		{ENDS "ALLOW_IF(read, ARG(0) == 010)", "32 bits"},
		{ENDS "ALLOW_IF(read, ARG(0) == 0x)", "1 to 8 digits"},
		{ENDS "ALLOW_IF(read, ARG(0) == 0x123456789)", "1 to 8 digits"},
		{ENDS "ALLOW_IF(read, ARG(0) == 0xg)", "not a number"},
		{ENDS "ALLOW_IF(read, ARG(0) == AF_VSOCK)", "expected a number or a name"},
		{ENDS "ALLOW_IF(read, ARG(0) == 1 | 2)", "expected ')'"},
		{ENDS "ALLOW_IF(read, ARG(0) == (1 | ))", "expected a number or a name"},
		{ENDS "ALLOW_IF(read, ARG(0) == 1 ARG(1) == 1)", "expected ')'"},
		{ENDS "ALLOW_IF(read, ARG(0) == 1 && ARG(0) == 1 && ARG(0) == 1 && ARG(0) == 1 && "
		      "ARG(0) == 1 && ARG(0) == 1 && ARG(0) == 1)",
			"too many terms"},
		{ENDS "/* no end", "comment without end"},
		{ENDS "/*/", "comment without end"},
		{ENDS "INCLUDE(base)", "INCLUDE(\"file\")"},
		{ENDS "INCLUDE(\"../x.def\")", "without folders"},
		{ENDS "INCLUDE(\"no-such.def\")", "cannot open"},
		{ENDS "INCLUDE(\"x", "string without end"},
		{ENDS "MARK(nfsservctl) MARK(read)", "one MARK"},
		{ENDS "MARK(socketcall)", "one MARK"},
		{ENDS "ALLOW(nfsservctl) MARK(nfsservctl)", "decides this call already"},
		{ENDS "COMPLETE(write) ALLOW(read)", "no row for 'write'"},
		{ENDS "\xff", "no list has"},
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err err = {0};

		if (compile("x86_64", view_str(bad[i].text), &err) >= 0)
			fail_msg("accepted: %s", bad[i].text);
		if (strstr(err.text, bad[i].part) == NULL)
			fail_msg("\"%s\" says \"%s\", not \"%s\"", bad[i].text, err.text,
				bad[i].part);
	}
}

static void
refuses_other_architectures(void **state UNUSED)
{
	struct err err = {0};

	assert_int_equal(compile("riscv64", view_str(ENDS), &err), -ENOTSUP);
	assert_int_equal(compile("x86", view_str(ENDS), &err), -ENOTSUP);
}

/* Any prefix of a list is refused or read, never more than its bytes (run under ASan too). */
static void
reads_any_prefix(void **state UNUSED)
{
	const char *text = ENDS
		"ERRNO_IF(EPERM, socket, (ARG(0) & (1 | 2)) == 0x1 && ARG(1) != 3)/* */";
	struct err err = {0};

	for (size_t n = 0; n <= strlen(text); n++) {
		auto_free char *copy = malloc(n + 1);

		assert_non_null(copy);
		memcpy(copy, text, n);
		(void)compile("x86_64", view_of(copy, n), &err);
	}
}

static void
first_row_that_holds_decides(void **state UNUSED)
{
	const char *text = "DEFAULT(ERRNO, EPERM) FOREIGN(ERRNO, ENOSYS)"
			   "ALLOW_IF(socket, ARG(0) == AF_UNIX)"
			   "KILL_IF(socket, ARG(0) != 5 && (ARG(1) & 0xf0) == 0x30)"
			   "ERRNO(EACCES, socket)  ALLOW(read)  ALLOW_IF(personality, ARG(0) == 7)";
	struct err err = {0};
	int n = compile("x86_64", view_str(text), &err);
	size_t len = (size_t)n;
	uint32_t x86 = AUDIT_ARCH_X86_64;

	assert_true(n > 0);
	assert_int_equal(ask(len, x86, 41, 1, 0x30), SECCOMP_RET_ALLOW);
	/* High halves are not looked at. */
	assert_int_equal(ask(len, x86, 41, 0xffffffff00000001u, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(ask(len, x86, 41, 2, 0x35), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(ask(len, x86, 41, 5, 0x35), SECCOMP_RET_ERRNO | EACCES);
	assert_int_equal(ask(len, x86, 41, 2, 0x70), SECCOMP_RET_ERRNO | EACCES);
	assert_int_equal(ask(len, x86, 0, 9, 9), SECCOMP_RET_ALLOW);
	assert_int_equal(ask(len, x86, 135, 7, 9), SECCOMP_RET_ALLOW);
	assert_int_equal(ask(len, x86, 135, 8, 9), SECCOMP_RET_ERRNO | EPERM); /* DEFAULT */
	assert_int_equal(ask(len, x86, 1, 0, 0), SECCOMP_RET_ERRNO | EPERM);
	assert_int_equal(ask(len, x86, 5000, 0, 0), SECCOMP_RET_ERRNO | EPERM);
	assert_int_equal(ask(len, x86, 0x40000000, 0, 0), SECCOMP_RET_ERRNO | ENOSYS);
	assert_int_equal(ask(len, x86, -1, 0, 0), SECCOMP_RET_ERRNO | ENOSYS);
	assert_int_equal(ask(len, AUDIT_ARCH_I386, 0, 0, 0), SECCOMP_RET_ERRNO | ENOSYS);
}

/* The same names, other numbers; open(2) does not exist there and its row is dropped. */
static void
other_architecture_has_its_own_numbers(void **state UNUSED)
{
	struct err err = {0};
	int n = compile("aarch64", view_str(ENDS "ALLOW(read) ALLOW(open) ALLOW(socket)"), &err);
	size_t len = (size_t)n;

	assert_true(n > 0);
	for (int nr = 0; nr < 2000; nr++)
		assert_int_equal(ask(len, AUDIT_ARCH_AARCH64, nr, 0, 0),
			nr == 63 || nr == 198 ? SECCOMP_RET_ALLOW : SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(ask(len, AUDIT_ARCH_ARM, 63, 0, 0), SECCOMP_RET_ERRNO | ENOSYS);
	assert_int_equal(ask(len, AUDIT_ARCH_X86_64, 63, 0, 0), SECCOMP_RET_ERRNO | ENOSYS);
}

/* Every number has the verdict of its row, however the search tree was cut. */
static void
search_finds_every_number(void **state UNUSED)
{
	struct err err = {0};
	char text[4096] = ENDS;
	static const char *const names[] = {"read", "open", "poll", "mmap", "pipe", "dup", "pause",
		"socket", "exit", "kill", "futex", "openat", "memfd_create", "io_uring_setup"};
	static const int nrs[] = {0, 2, 7, 9, 22, 32, 34, 41, 60, 62, 202, 257, 319, 425};

	for (size_t used = 0; used <= ARRAY_LEN(names); used++) {
		int n = compile("x86_64", view_str(text), &err);

		assert_true(n > 0);
		for (int nr = 0; nr < 1100; nr++) {
			bool allowed = false;

			for (size_t i = 0; i < used; i++)
				allowed |= nrs[i] == nr;
			assert_int_equal(ask((size_t)n, AUDIT_ARCH_X86_64, nr, 0, 0),
				allowed ? SECCOMP_RET_ALLOW : SECCOMP_RET_KILL_PROCESS);
		}
		if (used < ARRAY_LEN(names)) {
			size_t at = strlen(text);

			(void)snprintf(text + at, sizeof(text) - at, "ALLOW(%s)\n", names[used]);
		}
	}
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_what_is_not_a_list),
		cmocka_unit_test(refuses_other_architectures),
		cmocka_unit_test(reads_any_prefix),
		cmocka_unit_test(first_row_that_holds_decides),
		cmocka_unit_test(other_architecture_has_its_own_numbers),
		cmocka_unit_test(search_finds_every_number),
	};

	return cmocka_run_group_tests_name("jail-gen", tests, NULL, NULL);
}
