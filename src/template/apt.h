/* SPDX-License-Identifier: Apache-2.0 */
/* What the host's apt knows: archives of a Debian release, and versions in a finished tree. */
#pragma once

#include "template/manifest.h"

/*
 * "deb URI RELEASE COMPONENT" for each main archive of `suite`, its updates and its security
 * fixes in the host's apt configuration. No mirror is ever written into a template.
 */
int apt_sources(const char *suite, struct strings *ret, struct err *err) MUST_CHECK;

/* "package=version" of all that dpkg installed in the tree, sorted; none if there is no dpkg. */
int apt_versions(int root, struct strings *ret, struct err *err) MUST_CHECK;
