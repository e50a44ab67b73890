/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as files of operations (a NUL divides them): faults with a place, or a catalogue that its readers take, in
 * order, and the same once more.
 */
#include "config/operations.h"
#include "lib/action/operation.h"
#include "lib/canon/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
count(void *ctx, const char *file, struct place at, const char *text)
{
	must(file[0] == 'f' && at.line > 0 && at.column > 0 && text[0] != '\0');
	(*(unsigned *)ctx)++;
}

static void
read_all(struct view all, uint32_t operations)
{
	struct operation last = {0}, op = {0};
	struct err err = {0};

	for (uint32_t i = 0; i < operations; i++) {
		size_t n;

		must(all.n > 4);
		n = (size_t)all.p[2] << 8 | all.p[3];
		must(all.p[0] == 0 && all.p[1] == 0 && n <= all.n - 4);
		must(operation_read(view_of(all.p + 4, n), &op, &err) == 0);
		must(i == 0 || canon_key_compare(last.name, op.name) < 0);
		last = op;
		all = view_skip(all, 4 + n);
	}
	must(all.n == 0);
}

static unsigned
compile(const struct operations_file *files, size_t n, struct operations *ret)
{
	unsigned told = 0, faults;
	const struct operations_sink sink = {.ctx = &told, .on_fault = count};

	faults = operations_compile(files, n, ret, &sink);
	must(faults == told || (faults > told && told == OPERATIONS_FAULTS_MAX));
	return faults;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"f1", "f2", "f3"};
	struct operations_file files[ARRAY_LEN(names)];
	auto_operations struct operations once, again;
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
	if (faults == 0) {
		read_all(buf_view(&once.catalogue), once.noperations);
		must(canon_check(buf_view(&once.origins), false, &err) == 0);
		must(view_eq(buf_view(&once.catalogue), buf_view(&again.catalogue)));
		must(view_eq(buf_view(&once.origins), buf_view(&again.origins)));
	}
	return 0;
}
