/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of what the supervisor reads as text: its journal, and where cgroups are. The first byte chooses; for the
 * hierarchies a NUL separates the two files. A journal that is taken names each entry once.
 */
#include "supervisor/hierarchy.h"
#include "supervisor/journal.h"
#include "supervisor/text.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
journal(struct view text)
{
	struct journal_held f = {0};
	struct err err;

	if (journal_parse(text, &f, &err) < 0)
		return;
	for (size_t i = 0; i < f.n; i++) {
		must(f.entries[i].name[0] != '\0' &&
			memchr(f.entries[i].name, '\0', JOURNAL_NAME) != NULL);
		for (size_t k = 0; k < i; k++)
			must(strcmp(f.entries[i].name, f.entries[k].name) != 0);
	}
	for (size_t i = 0; i < f.nparents; i++)
		must(f.parents[i][0] == '/' && strstr(f.parents[i], "/../") == NULL);
	journal_held_done(&f);
}

static void
hierarchy(struct view text)
{
	const uint8_t *nul = text.n == 0 ? NULL : memchr(text.p, '\0', text.n);
	size_t first = nul == NULL ? text.n : (size_t)(nul - text.p);
	struct view mounts = view_of(text.p, first), groups = view_skip(text, first + 1), value;
	static const char *const names[] = {"memory", "pids", NULL};
	char room[32];

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (hierarchy_find(mounts, groups, names[i], room, sizeof(room)) == 0)
			must(memchr(room, '\0', sizeof(room)) != NULL);
	if (text_key(text, "oom_kill", &value))
		must(value.p >= text.p && value.p + value.n <= text.p + text.n);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	if (n == 0)
		return 0;
	if ((data[0] & 1) != 0)
		journal(view_of(data + 1, n - 1));
	else
		hierarchy(view_of(data + 1, n - 1));
	return 0;
}
