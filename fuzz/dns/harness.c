/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of answers of name servers. The first byte chooses the type asked for and whether the rest is a whole message, or what follows
 * a header and question of ours (then two bytes are the flags and six the counts). What is taken keeps to the bounds, is of the family
 * that was asked for, and stands in the message; a name is asked for in no other form than it has.
 */
#include "dialer/dns.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { HEADER = 12 };

static void
check(const struct dns_answer *a, const struct dns_question *q, struct view message)
{
	size_t size = q->type == DNS_A ? 4 : 16;

	must(a->n <= DNS_ADDRESSES_MAX);
	must(!(a->truncated || a->no_name) || a->n == 0);
	for (size_t i = 0; i < a->n; i++) {
		must(a->address[i].family == (size == 4 ? AF_INET : AF_INET6));
		must(memmem(message.p, message.n, a->address[i].b, size) != NULL);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const uint8_t noise[34] = {0x12, 0x34, 0x55, 0xaa, 0x0f};
	static uint8_t message[DNS_TCP_MAX];
	struct dns_question q, any;
	struct dns_answer a;
	struct err err = {0};
	uint8_t query[DNS_QUERY_MAX];
	size_t whole;
	int r;

	if (n < 9 || n > 4096)
		return 0;
	must(dns_question_make(view_str("pay.example"), (data[0] & 1) != 0 ? DNS_A : DNS_AAAA,
		     noise, &q, &err) == 0);
	if ((data[0] & 2) != 0) {
		r = dns_answer_read(view_of(data + 1, n - 1), &q, &a, &err);
		if (r == 0)
			check(&a, &q, view_of(data + 1, n - 1));
		else
			must(r == -ENOMSG || r == -EPROTO || r == -EAGAIN);
		r = dns_question_make(view_of(data + 1, n - 1), q.type, noise, &any, &err);
		must((r == 0) == host_name_ok(view_of(data + 1, n - 1)));
		if (r == 0)
			must(dns_query_write(&any, query) == n - 1 + 2 + HEADER + 4);
		return 0;
	}
	whole = dns_query_write(&q, message);
	message[2] = data[1] | 0x80;
	message[3] = data[2];
	memcpy(message + 6, data + 3, 6);
	memcpy(message + whole, data + 9, n - 9);
	whole += n - 9;
	r = dns_answer_read(view_of(message, whole), &q, &a, &err);
	if (r == 0)
		check(&a, &q, view_of(message, whole));
	else
		must(err.code == r && err.text[0] != '\0');
	return 0;
}
