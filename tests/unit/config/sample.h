/* SPDX-License-Identifier: Apache-2.0 */
/* Files of this folder, and of the tree from here, as texts. What is missing fails the test. */
#pragma once

enum { TEXT_BYTES = 1 << 20 };

/* The whole of it, less than TEXT_BYTES; until the next call. */
char *file_text(const char *name);

/* The same with one change of what stands in it exactly once; owned by the caller. */
char *file_changed(const char *name, const char *from, const char *to);
