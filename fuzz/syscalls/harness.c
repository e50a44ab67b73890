/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of the compiler of syscall lists. The first byte chooses the architecture, the rest
 * is a list. What compiles must be a program that the kernel would take: forward jumps
 * inside the program, known instructions, a return at the end.
 */
#include "lib/jail/gen/def.h"

#include <linux/filter.h>
#include <linux/seccomp.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
check(const struct sock_filter *f, size_t n)
{
	must(n > 0 && f[n - 1].code == (BPF_RET | BPF_K));
	for (size_t i = 0; i < n; i++)
		switch (f[i].code) {
		case BPF_LD | BPF_W | BPF_ABS:
			must(f[i].k % 4 == 0 && f[i].k < sizeof(struct seccomp_data));
			break;
		case BPF_JMP | BPF_JA:
			must(f[i].k < n - i - 1);
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
		case BPF_JMP | BPF_JGE | BPF_K:
			must(f[i].jt < n - i - 1 && f[i].jf < n - i - 1);
			break;
		default:
			must(f[i].code == (BPF_RET | BPF_K) ||
				f[i].code == (BPF_ALU | BPF_AND | BPF_K));
		}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct sock_filter out[DEF_INSNS_MAX];
	static struct def d;
	struct err err;
	size_t len;

	if (n == 0)
		return 0;
	must(def_init(&d, data[0] % 2 == 0 ? "x86_64" : "aarch64", "fuzz", &err) == 0);
	if (def_read_text(&d, "fuzz", view_of(data + 1, n - 1), "/nowhere", &err) == 0 &&
		def_check(&d, &err) == 0 && def_compile(&d, out, ARRAY_LEN(out), &len, &err) == 0)
		check(out, len);
	return 0;
}
