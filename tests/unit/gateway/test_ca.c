/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The authority of a sandbox, by OpenSSL's own verification in its strict mode: leaves for names of the rules are good, for any other name they are
 * not, whoever has the key; how leaves are kept; the key store of Java; files of roots.
 */
#include "ends.h"

#include "gateway/ca.h"
#include "gateway/leaf.h"
#include "gateway/limits.h"
#include "gateway/roots.h"
#include "gateway/x509.h"

#include "lib/base/clock.h"
#include "lib/base/fd.h"

#include <errno.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

#include <cmocka.h>

static struct policy policy;
static struct buf pem, jks;
static struct err err;
static struct ca *ca;
static X509 *authority;

static void
rule(enum rule_kind kind, bool tls, enum rule_labels labels, const char *host)
{
	struct address a;

	policy.rule[policy.nrules++] = (struct rule){.kind = kind,
		.tls = tls,
		.labels = labels,
		.host = view_str(host),
		.literal = address_parse(view_str(host), &a) == 0};
}

static void
make(void)
{
	BIO *bio;

	ca_free(ca);
	X509_free(authority);
	ca = ca_new(&err);
	assert_non_null(ca);
	assert_int_equal(ca_certify(ca, &policy, &pem, &jks, &err), 0);
	bio = BIO_new_mem_buf(pem.p, (int)pem.n);
	authority = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	BIO_free(bio);
	assert_non_null(authority);
}

static int
set_up(void **state)
{
	(void)state;
	memset(&policy, 0, sizeof(policy));
	rule(RULE_KIND_FETCH, true, LABELS_NONE, "allowed.test");
	rule(RULE_KIND_FETCH, true, LABELS_NONE, "allowed.test");
	rule(RULE_KIND_BROKERED, false, LABELS_ONE, "wide.test");
	rule(RULE_KIND_FETCH, false, LABELS_NONE, "plain.test");
	rule(RULE_KIND_PASSTHROUGH, false, LABELS_NONE, "opaque.test");
	rule(RULE_KIND_TCP, false, LABELS_NONE, "tcp.test");
	make();
	return 0;
}

static X509 *
leaf(const char *name)
{
	SSL *ssl = SSL_new(ca_context(ca));
	X509 *cert;

	assert_int_equal(ca_leaf_use(ca, ssl, view_str(name), &err), 0);
	cert = SSL_get_certificate(ssl);
	assert_int_equal(X509_check_private_key(cert, SSL_get_privatekey(ssl)), 1);
	(void)X509_up_ref(cert);
	SSL_free(ssl);
	return cert;
}

/* X509_V_OK, or why a strict client refuses a server of this name. */
static int
verify(const char *name)
{
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	X509 *cert = leaf(name);
	struct address a;
	int r;

	assert_int_equal(X509_STORE_add_cert(store, authority), 1);
	assert_int_equal(X509_STORE_CTX_init(ctx, store, cert, NULL), 1);
	assert_int_equal(X509_STORE_CTX_set_default(ctx, "ssl_server"), 1);
	X509_VERIFY_PARAM_set_flags(X509_STORE_CTX_get0_param(ctx), X509_V_FLAG_X509_STRICT);
	if (address_parse(view_str(name), &a) == 0)
		X509_VERIFY_PARAM_set1_ip_asc(X509_STORE_CTX_get0_param(ctx), name);
	else
		X509_VERIFY_PARAM_set1_host(X509_STORE_CTX_get0_param(ctx), name, 0);
	r = X509_verify_cert(ctx) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(ctx);
	X509_free(cert);
	X509_STORE_CTX_free(ctx);
	X509_STORE_free(store);
	return r;
}

static void
names_of_intercepted_rules_are_good(void **state)
{
	(void)state;
	assert_int_equal(verify("allowed.test"), X509_V_OK);
	assert_int_equal(verify("a.wide.test"), X509_V_OK);
	assert_int_equal(verify("a.b.wide.test"), X509_V_OK);
}

static void
names_of_no_intercepted_rule_are_refused_by_who_trusts_it(void **state)
{
	static const char *const names[] = {"evil.test", "plain.test", "opaque.test", "tcp.test",
		"test", "notallowed.test", "allowed.test.evil.test", "192.0.2.7", "2001:db8::7",
		"0.0.0.1", "localhost"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_int_equal(verify(names[i]), X509_V_ERR_PERMITTED_VIOLATION);
}

static void
addresses_are_constrained_as_addresses(void **state)
{
	(void)state;
	memset(&policy, 0, sizeof(policy));
	rule(RULE_KIND_FETCH, true, LABELS_NONE, "192.0.2.7");
	rule(RULE_KIND_FETCH, true, LABELS_NONE, "2001:db8::7");
	make();
	assert_int_equal(verify("192.0.2.7"), X509_V_OK);
	assert_int_equal(verify("2001:db8::7"), X509_V_OK);
	assert_int_equal(verify("192.0.2.8"), X509_V_ERR_PERMITTED_VIOLATION);
	assert_int_equal(verify("2001:db8::8"), X509_V_ERR_PERMITTED_VIOLATION);
	assert_int_equal(verify("evil.test"), X509_V_ERR_PERMITTED_VIOLATION);
}

static void
the_authority_is_what_it_should_be(void **state)
{
	time_t now = (time_t)(clock_real_ms() / 1000);
	char name[100];

	(void)state;
	(void)X509_NAME_oneline(X509_get_subject_name(authority), name, sizeof(name));
	assert_string_equal(name, "/CN=Demilune sandbox authority");
	/* Directories of certificates name their links by this. */
	assert_int_equal(
		X509_NAME_hash_ex(X509_get_subject_name(authority), NULL, NULL, NULL), 0xb674e9d2);
	assert_int_equal(X509_check_ca(authority), 1);
	assert_int_equal(X509_get_pathlen(authority), 0);
	assert_int_equal(X509_get_key_usage(authority), KU_KEY_CERT_SIGN);
	assert_non_null(X509_get0_subject_key_id(authority));
	assert_non_null(X509_get0_authority_key_id(authority));
	assert_true(X509_get_ext_by_critical(authority, 1, -1) >= 0);
	assert_int_equal(X509_EXTENSION_get_critical(X509_get_ext(authority,
				 X509_get_ext_by_NID(authority, NID_name_constraints, -1))),
		1);
	assert_int_equal(EVP_PKEY_get_bits(X509_get0_pubkey(authority)), 256);
	now -= 3600;
	assert_int_equal(X509_cmp_time(X509_get0_notBefore(authority), &(time_t){now + 60}), -1);
	assert_int_equal(X509_cmp_time(X509_get0_notBefore(authority), &(time_t){now - 60}), 1);
	/* another sandbox has another key */
	assert_int_equal(
		EVP_PKEY_eq(X509_get0_pubkey(authority), SSL_CTX_get0_privatekey(ca_context(ca))),
		0);
}

static void
a_leaf_names_exactly_one(void **state)
{
	X509 *cert = leaf("allowed.test");
	GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
	ASN1_STRING *text;
	int type;

	(void)state;
	assert_int_equal(sk_GENERAL_NAME_num(names), 1);
	text = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, 0), &type);
	assert_int_equal(type, GEN_DNS);
	assert_int_equal(ASN1_STRING_length(text), 12);
	assert_memory_equal(ASN1_STRING_get0_data(text), "allowed.test", 12);
	GENERAL_NAMES_free(names);
	assert_int_equal(X509_check_ca(cert), 0);
	assert_int_equal(X509_get_key_usage(cert), KU_DIGITAL_SIGNATURE);
	assert_int_equal(X509_get_extended_key_usage(cert), XKU_SSL_SERVER);
	assert_int_equal(ASN1_OCTET_STRING_cmp(X509_get0_authority_key_id(cert),
				 X509_get0_subject_key_id(authority)),
		0);
	assert_int_equal(X509_verify(cert, X509_get0_pubkey(authority)), 1);
	X509_free(cert);
}

/* As a name that is no host name would: an option of OpenSSL's configuration, a second name. */
static void
a_name_is_never_read_as_more_than_a_name(void **state)
{
	X509 *cert = leaf("a,DNS:evil.test");
	GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);

	(void)state;
	assert_int_equal(sk_GENERAL_NAME_num(names), 1);
	assert_int_equal(X509_check_host(cert, "evil.test", 0, 0, NULL), 0);
	GENERAL_NAMES_free(names);
	X509_free(cert);
}

/* ---- how leaves are kept ---- */

static struct leaves *leaves;
static EVP_PKEY *keys[2];

static X509 *
get(const char *name, time_t now)
{
	X509 *cert;

	assert_int_equal(leaves_get(leaves, view_str(name), now, &cert, &err), 0);
	return cert;
}

/* The same object would not do: memory is used again. */
static uint64_t
serial(X509 *cert)
{
	const ASN1_INTEGER *n = X509_get0_serialNumber(cert);
	uint64_t v;

	assert_true(ASN1_STRING_length(n) >= 16);
	memcpy(&v, ASN1_STRING_get0_data(n), sizeof(v));
	return v;
}

static void
leaves_begin(time_t now)
{
	EVP_MD *sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
	X509 *cert;

	keys[0] = x509_key_new();
	keys[1] = x509_key_new();
	cert = x509_new(keys[0], now, now + (time_t)LIMIT_AUTHORITY_S);
	assert_true(X509_sign(cert, keys[0], sha256) > 0);
	EVP_MD_free(sha256);
	X509_free(authority);
	authority = cert;
	leaves = leaves_new(cert, keys[0], keys[1], &err);
	assert_non_null(leaves);
}

static void
leaves_end(void)
{
	leaves_free(leaves);
	EVP_PKEY_free(keys[0]);
	EVP_PKEY_free(keys[1]);
}

static void
a_leaf_is_kept_until_half_of_its_life(void **state)
{
	const time_t t = 1800000000, half = (time_t)LIMIT_LEAF_S / 2;
	uint64_t first;
	X509 *v;

	(void)state;
	leaves_begin(t);
	first = serial(get("a.test", t));
	assert_true(first == serial(get("a.test", t + half - 1)));
	assert_true(first != serial(get("a.test", t + half)));
	assert_int_equal(leaves_count(leaves), 1);
	/* Near the end of the authority they are shorter, and behind it there are none. */
	(void)get("b.test", t + (time_t)LIMIT_AUTHORITY_S - 1);
	assert_int_equal(
		leaves_get(leaves, view_str("c.test"), t + (time_t)LIMIT_AUTHORITY_S, &v, &err),
		-EKEYEXPIRED);
	assert_int_equal(
		leaves_get(leaves, view_str("a.test"), t + (time_t)LIMIT_AUTHORITY_S, &v, &err),
		-EKEYEXPIRED);
	assert_int_equal(leaves_get(leaves, view_str(""), t, &v, &err), -EINVAL);
	leaves_end();
}

static void
the_leaf_not_used_for_longest_goes(void **state)
{
	uint64_t first, second;
	char name[32];

	(void)state;
	leaves_begin(1800000000);
	first = serial(get("first.test", 1800000000));
	second = serial(get("second.test", 1800000000));
	for (size_t i = 0; i < LIMIT_LEAVES - 2; i++) {
		(void)snprintf(name, sizeof(name), "n%zu.test", i);
		(void)get(name, 1800000000);
	}
	assert_int_equal(leaves_count(leaves), LIMIT_LEAVES);
	assert_true(first == serial(get("first.test", 1800000000)));
	(void)get("one-more.test", 1800000000);
	assert_int_equal(leaves_count(leaves), LIMIT_LEAVES);
	assert_true(first == serial(get("first.test", 1800000000)));
	assert_true(second != serial(get("second.test", 1800000000)));
	leaves_end();
}

/* ---- what is handed out ---- */

/* 64 names of the longest kind fit the messages (proto: GATEWAY_READY, TRUST). */
static void
the_longest_constraints_fit(void **state)
{
	static char names[POLICY_RULES_MAX][254];

	(void)state;
	memset(&policy, 0, sizeof(policy));
	for (size_t i = 0; i < POLICY_RULES_MAX; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "n%02zu", i);
		for (size_t k = 3; k < 253; k++)
			names[i][k] = k % 50 == 49 ? '.' : 'a';
		names[i][253] = '\0';
		rule(RULE_KIND_FETCH, true, LABELS_NONE, names[i]);
		assert_true(host_name_ok(view_str(names[i])));
	}
	make();
	assert_true(pem.n <= 24576 && jks.n <= 24576);
	assert_int_equal(verify(names[63]), X509_V_OK);
	assert_int_equal(verify("evil.test"), X509_V_ERR_PERMITTED_VIOLATION);
}

static void
no_room_is_told(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct ca *new = ca_new(&err);
		struct buf small;

		buf_init(&small, 100);
		assert_non_null(new);
		assert_true(ca_certify(new, &policy, i == 0 ? &small : &pem, i == 0 ? &jks : &small,
				    &err) < 0);
		assert_true(err.code < 0);
		ca_free(new);
		buf_done(&small);
	}
}

/* It is prepared without a policy, and is of no use until it has one, and then of that one alone. */
static void
one_policy_and_not_before(void **state)
{
	struct ca *new = ca_new(&err);
	SSL *ssl = SSL_new(ca_context(new));

	(void)state;
	assert_int_equal(ca_leaf_use(new, ssl, policy.rule[0].host, &err), -EKEYEXPIRED);
	assert_int_equal(ca_certify(new, &policy, &pem, &jks, &err), 0);
	assert_int_equal(ca_leaf_use(new, ssl, policy.rule[0].host, &err), 0);
	assert_true(ca_certify(new, &policy, &pem, &jks, &err) < 0);
	SSL_free(ssl);
	ca_free(new);
}

/* ---- roots ---- */

static int
file(const void *p, size_t n)
{
	int fd = memfd_create("roots", MFD_CLOEXEC);

	assert_int_equal(fd_write_all(fd, p, n, &err), 0);
	return fd;
}

static void
a_bad_file_of_roots_refuses(void **state)
{
	struct roots *r = roots_new();
	auto_buf struct buf two, cut;
	SSL_CTX *ctx;

	(void)state;
	buf_init(&two, 65536);
	buf_init(&cut, 65536);
	buf_add_view(&two, buf_view(&pem));
	buf_add_str(&two, "some words between\n");
	buf_add_view(&two, buf_view(&pem));
	buf_add(&cut, two.p, two.n - 60);
	assert_int_equal(roots_add(r, "", file(pem.p, pem.n), &err), 0);
	assert_int_equal(roots_add(r, "two", file(two.p, two.n), &err), 0);
	assert_int_equal(roots_add(r, "cut", file(cut.p, cut.n), &err), 0);
	assert_int_equal(roots_add(r, "empty", file("", 0), &err), 0);
	assert_int_equal(roots_add(r, "words", file("no certificate\n", 15), &err), 0);
	assert_int_equal(roots_add(r, "two", file("", 0), &err), -EINVAL);
	ctx = roots_context(r, view_str(""), &err);
	assert_non_null(ctx);
	assert_ptr_equal(roots_context(r, view_str(""), &err), ctx);
	assert_non_null(roots_context(r, view_str("two"), &err));
	assert_null(roots_context(r, view_str("cut"), &err));
	assert_non_null(strstr(err.text, "cut"));
	assert_null(roots_context(r, view_str("cut"), &err)); /* and again */
	assert_null(roots_context(r, view_str("empty"), &err));
	assert_null(roots_context(r, view_str("words"), &err));
	assert_null(roots_context(r, view_str("none"), &err));
	assert_int_equal(err.code, -ENOENT);
	roots_free(r);
}

/* The supervisor may give the same open file to many: none moves the others' position. */
static void
roots_are_read_by_position(void **state)
{
	struct roots *r = roots_new();
	int fd = file(pem.p, pem.n);

	(void)state;
	assert_int_equal(lseek(fd, 0, SEEK_CUR), (off_t)pem.n);
	assert_int_equal(roots_add(r, "", dup(fd), &err), 0);
	assert_non_null(roots_context(r, view_str(""), &err));
	assert_int_equal(lseek(fd, 0, SEEK_CUR), (off_t)pem.n);
	(void)close(fd);
	roots_free(r);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(names_of_intercepted_rules_are_good),
		TEST(names_of_no_intercepted_rule_are_refused_by_who_trusts_it),
		TEST(addresses_are_constrained_as_addresses),
		TEST(the_authority_is_what_it_should_be),
		TEST(a_leaf_names_exactly_one),
		TEST(a_name_is_never_read_as_more_than_a_name),
		TEST(a_leaf_is_kept_until_half_of_its_life),
		TEST(the_leaf_not_used_for_longest_goes),
		TEST(the_longest_constraints_fit),
		TEST(no_room_is_told),
		TEST(one_policy_and_not_before),
		TEST(a_bad_file_of_roots_refuses),
		TEST(roots_are_read_by_position),
	};
	int r;

	(void)OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	buf_init(&pem, 65536);
	buf_init(&jks, 65536);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	ca_free(ca);
	X509_free(authority);
	buf_done(&pem);
	buf_done(&jks);
	return r;
}
