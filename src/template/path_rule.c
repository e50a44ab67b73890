/* SPDX-License-Identifier: Apache-2.0 */
/* Which paths a manifest or a command line may name; pure functions on text. */
#include "template/path_rule.h"

#include "lib/base/attr.h"

bool
path_rule_plain(struct view v, const char *extra)
{
	static const char set[] = "abcdefghijklmnopqrstuvwxyz"
				  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789/._+-";
	size_t from = 0;

	if (v.n < 2 || v.p[0] != '/')
		return false;
	for (size_t i = 0; i <= v.n; i++) {
		struct view part;

		if (i < v.n && v.p[i] != '/') {
			if (v.p[i] == '\0' ||
				(strchr(set, v.p[i]) == NULL && strchr(extra, v.p[i]) == NULL))
				return false;
			continue;
		}
		part = view_of(v.p + from, i - from);
		if (i != 0 && (part.n == 0 || view_is(part, ".") || view_is(part, "..")))
			return false;
		from = i + 1;
	}
	return true;
}

bool
path_rule_holds(const char *a, struct view b)
{
	size_t n = strlen(a);

	return view_starts(b, a) && (b.n == n || b.p[n] == '/');
}

bool
path_rule_place(struct view v)
{
	static const char *const kernel[] = {"/dev", "/etc", "/proc", "/sys", "/usr", "/bin",
		"/sbin", "/lib", "/lib64", "/boot"};

	if (!path_rule_plain(v, ""))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(kernel); i++) {
		if (path_rule_holds(kernel[i], v))
			return false;
	}
	return true;
}
