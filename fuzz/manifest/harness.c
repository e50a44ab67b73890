/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of template.yaml. Whatever is taken must have a canonical text, and a refusal
 * must come with its problem.
 */
#include "template/manifest.h"

#include "lib/canon/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct manifest m auto_manifest = {0};
	struct buf problems auto_buf = {0}, json auto_buf = {0};
	struct err err = {0};

	buf_init(&problems, 65536);
	buf_init(&json, CANON_BYTES_MAX);
	if (manifest_parse(view_of(data, n), "f", &m, &problems, &err) < 0) {
		must(err.code < 0 && (problems.n != 0 || problems.failed));
		return 0;
	}
	must(m.name != NULL && m.home != NULL && m.uid >= 1000 && m.places.n != 0);
	if (manifest_json(&m, &json, &err) == 0)
		must(canon_check(buf_view(&json), false, &err) == 0);
	return 0;
}
