/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as demilune.yaml: settings that satisfy all rules, or at least one fault. */
#include "config/compile.h"
#include "config/option.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
count(void *ctx, struct place at, const char *text)
{
	must(at.line > 0 && at.column > 0 && text[0] != '\0');
	(*(unsigned *)ctx)++;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned told = 0;
	const struct document_sink sink = {.ctx = &told, .on_fault = count};
	struct settings s;
	struct err err = {0};
	unsigned faults = compile(view_of(data, size), &s, &sink);

	must(faults == told);
	must(faults > 0 || options_check(&s, 0, &err) == 0);
	return 0;
}
