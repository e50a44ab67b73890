/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of ClientHellos. The first byte says how the rest is put into records: 0, as it is (whole bytes of a connection); else it is a message
 * that is put into records of so many bytes. A verdict is that of the whole whatever was seen before; what is taken as a name is one.
 */
#include "gateway/hello.h"

#include "lib/base/buf.h"
#include "lib/base/host.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
check(struct view bytes)
{
	struct hello h = {0}, cut = {0};
	enum hello_verdict v = hello_read(bytes, &h), part;

	must(v != HELLO_MORE || bytes.n < HELLO_MAX);
	if (v == HELLO_DONE) {
		must(!h.name_bad || (h.has_name && h.name_n == 0));
		must(h.name_n == 0 || (h.has_name && host_name_ok(view_of(h.name, h.name_n))));
		must(!h.has_name || h.name_bad || h.name_n != 0);
	}
	for (size_t k = 0; k < bytes.n; k += 1 + bytes.n / 16) {
		part = hello_read(view_of(bytes.p, k), &cut);
		must(part == HELLO_MORE || part == v);
		if (part == HELLO_DONE)
			must(memcmp(&cut, &h, sizeof(h)) == 0);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	auto_buf struct buf b;
	size_t each;

	buf_init(&b, 1 << 20);
	if (n < 1 || n > 20000)
		return 0;
	each = data[0];
	data++;
	n--;
	if (each == 0) {
		check(view_of(data, n));
		return 0;
	}
	for (size_t at = 0; at < n; at += each) {
		size_t k = n - at < each ? n - at : each;
		const uint8_t header[] = {22, 3, 1, (uint8_t)(k >> 8), (uint8_t)k};

		buf_add(&b, header, sizeof(header));
		buf_add(&b, data + at, k);
	}
	check(buf_view(&b));
	return 0;
}
