/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of questions that programs of a sandbox send. What is read has a canonical name or none, is of class IN, and its answer, whatever
 * it is, fits a datagram and is no question again; what is refused gets a header and nothing of its own bytes but the id and RD.
 */
#include "gateway/dns.h"

#include <errno.h>
#include <sys/socket.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
check_answer(const struct dns_asked *q, enum dns_code code, const struct address *a)
{
	struct dns_asked again;
	enum dns_code why;
	struct buf out;

	buf_init(&out, DNS_UDP_ANSWER_MAX);
	dns_answer_write(&out, q, code, a, 2);
	must(buf_check(&out) == 0);
	must(memcmp(out.p + 12, q->wire.p, q->wire.n) == 0);
	must(dns_asked_read(buf_view(&out), &again, &why) == -ENOMSG);
	buf_done(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct address four = {.family = AF_INET}, six = {.family = AF_INET6};
	struct view message = view_of(data, n);
	enum dns_code code = DNS_NOERROR;
	struct dns_asked q;
	struct buf out;
	int r = dns_asked_read(message, &q, &code);

	if (r == -ENOMSG)
		return 0;
	if (r < 0) {
		must(code == DNS_FORMERR || code == DNS_NOTIMP);
		buf_init(&out, DNS_UDP_ANSWER_MAX);
		dns_error_write(&out, message, code);
		must(buf_check(&out) == 0 && out.n == 12 && (out.p[2] & ~1) == 0x80);
		buf_done(&out);
		return 0;
	}
	must(q.class == 1 && n <= DNS_MESSAGE_MAX && q.wire.n <= 255 + 4);
	must(q.wire.p == data + 12 && q.wire.n <= n - 12);
	must(q.name_n == 0 || host_name_ok(view_of(q.name, q.name_n)));
	check_answer(&q, DNS_NOERROR, &four);
	check_answer(&q, DNS_NOERROR, &six);
	check_answer(&q, DNS_NXDOMAIN, NULL);
	return 0;
}
