/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as files of policies (a NUL divides them): faults with a place, or documents that their readers take, and the same once more. */
#include "config/policies.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
count(void *ctx, const char *file, struct place at, const char *text)
{
	must(file[0] == 'f' && at.line > 0 && at.column > 0 && text[0] != '\0');
	(*(unsigned *)ctx)++;
}

static unsigned
compile(const struct operations_file *files, size_t n, struct policies_compiled *ret)
{
	unsigned told = 0, faults;
	const struct operations_sink sink = {.ctx = &told, .on_fault = count};

	faults = policies_compile(files, n, ret, &sink);
	must(faults == told || (faults > told && told == OPERATIONS_FAULTS_MAX));
	must(ret->n == n);
	return faults;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"f1.yaml", "f2.yaml"};
	static struct policies_compiled once, again;
	static struct policy p;
	struct operations_file files[ARRAY_LEN(names)];
	struct view rest = view_of(data, size);
	struct err err = {0};
	unsigned faults;
	size_t n = 0;

	while (n < ARRAY_LEN(names)) {
		const uint8_t *end = rest.n == 0 || n + 1 == ARRAY_LEN(names)
					     ? NULL
					     : memchr(rest.p, 0, rest.n);
		size_t length = end == NULL ? rest.n : (size_t)(end - rest.p);

		files[n] = (struct operations_file){names[n], view_of(rest.p, length)};
		n++;
		if (end == NULL)
			break;
		rest = view_skip(rest, length + 1);
	}
	faults = compile(files, n, &once);
	must(compile(files, n, &again) == faults);
	for (size_t i = 0; faults == 0 && i < n; i++) {
		must(policy_read(buf_view(&once.row[i].document), &p, &err) == 0);
		must(view_is(p.name, once.row[i].name));
		must(view_eq(buf_view(&once.row[i].document), buf_view(&again.row[i].document)));
	}
	policies_compiled_done(&once);
	policies_compiled_done(&again);
	return 0;
}
