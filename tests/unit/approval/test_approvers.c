/* SPDX-License-Identifier: Apache-2.0 */
/* lib/approval/approvers: the file of approvers, its one form, and what each option allows and forbids. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "keys.h"
#include "lib/approval/approvers.h"
#include "lib/base/base64.h"

#include <errno.h>

static struct buf keys[3]; /* "TYPE BASE64" of ed25519, ecdsa and a hardware key */
static struct buf blobs[3];

static int
begin(void **state)
{
	char dir[KEYS_PATH];
	struct fido *f = fido_new(false, "ssh:");

	(void)state;
	keys_dir_make(dir);
	for (size_t i = 0; i < 3; i++) {
		buf_init(&keys[i], 1024);
		buf_init(&blobs[i], 1024);
	}
	keys_generate(dir, "a", "ed25519", NULL, &blobs[0]);
	keys_generate(dir, "b", "ecdsa", "256", &blobs[1]);
	fido_blob(f, &blobs[2]);
	buf_add_str(&keys[0], "ssh-ed25519 ");
	buf_add_str(&keys[1], "ecdsa-sha2-nistp256 ");
	buf_add_str(&keys[2], "sk-ssh-ed25519@openssh.com ");
	for (size_t i = 0; i < 3; i++)
		base64_encode(buf_view(&blobs[i]), &keys[i]);
	fido_free(f);
	keys_dir_remove(dir);
	return 0;
}

static int
end(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++) {
		buf_done(&keys[i]);
		buf_done(&blobs[i]);
	}
	return 0;
}

/* A file of this text, where $0, $1, $2 stand for the keys. */
static void
put(struct buf *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '$')
			buf_add_view(out, buf_view(&keys[*++text - '0']));
		else
			buf_add_byte(out, (uint8_t)*text);
	}
}

static int
read_text(const char *text, struct approvers *ret, struct err *err)
{
	auto_buf struct buf file = {.max = APPROVERS_BYTES_MAX + 1};

	put(&file, text);
	return approvers_read(buf_view(&file), ret, err);
}

static void
a_whole_file(void **state)
{
	static const char text[] = "# people\n\n"
				   "anna may=refund,reply role=support up-to=cents:5000,items:3 "
				   "principal=uid:1000,token:dml_ab12 $0 anna@host of work\n"
				   "bob.s role=release,lead valid-until=2026-12-01T00:00:00Z $1\n"
				   "anna may=refund verify-required $2\n";
	auto_approvers struct approvers a = {0};
	const struct approver *one;
	uint8_t digest[SHA256_BYTES];
	auto_buf struct buf file = {.max = 4096};
	struct err err;

	(void)state;
	put(&file, text);
	assert_int_equal(approvers_read(buf_view(&file), &a, &err), 0);
	sha256_of(buf_view(&file), digest);
	assert_memory_equal(digest, a.digest, sizeof(digest));
	assert_int_equal(a.n, 3);
	assert_int_equal(a.people, 2);
	one = approvers_find(&a, buf_view(&blobs[0]));
	assert_non_null(one);
	assert_true(view_is(one->name, "anna"));
	assert_true(approver_may(one, view_str("refund")));
	assert_true(approver_may(one, view_str("reply")));
	assert_false(approver_may(one, view_str("refun")));
	assert_false(approver_may(one, view_str("refund,reply")));
	assert_false(approver_may(one, view_str("")));
	assert_int_equal(one->nlimits, 2);
	one = approvers_find(&a, buf_view(&blobs[1]));
	assert_true(view_is(one->name, "bob.s"));
	assert_false(approver_may(one, view_str("refund")));
	assert_int_equal(one->valid_until_ms, 1796083200000);
	one = approvers_find(&a, buf_view(&blobs[2]));
	assert_true(one->verify_required);
	assert_null(approvers_find(&a, view_str("nobody")));
}

static void
an_empty_file_is_one_without_approvers(void **state)
{
	struct err err;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		static const char *const texts[] = {"", "\n", "# nobody\n"};
		auto_approvers struct approvers a = {0};

		assert_int_equal(read_text(texts[i], &a, &err), 0);
		assert_int_equal(a.n, 0);
		assert_null(approvers_find(&a, buf_view(&blobs[0])));
	}
}

/* One bad line among good ones: there is no file. */
static void
one_bad_line_spoils_the_file(void **state)
{
	static const char *const bad[] = {
		"anna",
		"anna ",
		"anna may=refund",
		"anna may=refund ",
		"Anna $1",
		"1anna $1",
		"-anna $1",
		"anna, $1",
		"an na $1",
		"\xc3\xa4nna $1",
		"\xd0\xb0nna $1",
		" anna $1",
		"anna  $1",
		"anna\t$1",
		"anna may=refund  $1",
		"$1",
		"anna may= $1",
		"anna may=* $1",
		"anna may=refund, $1",
		"anna may=,refund $1",
		"anna may=Refund $1",
		"anna may=re-fund $1",
		"anna may=refund,refund $1",
		"anna may=refund may=reply $1",
		"anna may $1",
		"anna tenant= $1",
		"anna tenant=* $1",
		"anna tenant=acme,acme $1",
		"anna role= $1",
		"anna role=Lead $1",
		"anna up-to=cents $1",
		"anna up-to=cents: $1",
		"anna up-to=cents:-1 $1",
		"anna up-to=cents:5.0 $1",
		"anna up-to=cents:05 $1",
		"anna up-to=cents:99999999999999999999 $1",
		"anna up-to=:5 $1",
		"anna up-to=cents=5 $1",
		"anna up-to=cents:5,cents:6 $1",
		"anna up-to=a:1,b:1,c:1,d:1,e:1,f:1,g:1,h:1,i:1 $1",
		"anna principal=anna $1",
		"anna principal=uid:-1 $1",
		"anna principal=uid: $1",
		"anna principal=uid:4294967296 $1",
		"anna principal=token: $1",
		"anna principal=sandbox:sb_1 $1",
		"anna principal=token:a:b $1",
		"anna principal=token:dml $1",
		"anna principal=token:dml_AB12CD34 $1",
		"anna principal=token:dml_0123456789abcdef0123456789abcdef01234567 $1",
		"anna valid-until=2026-12-01 $1",
		"anna valid-until=2026-02-29T00:00:00Z $1",
		"anna valid-until=2026-12-01T24:00:00Z $1",
		"anna valid-until=2026-12-01T00:00:60Z $1",
		"anna valid-until=2026-12-01T00:00:00 $1",
		"anna valid-until=2026-12-01t00:00:00Z $1",
		"anna valid-until=1970-01-01T00:00:00Z $1",
		"anna valid-until=1969-12-31T23:59:59Z $1",
		"anna verify-required $1",
		"anna verify-required= $2",
		"anna admin $1",
		"anna ssh-ed25519",
		"anna ssh-ed25519 ",
		"anna ssh-ed25519 AAAA",
		"anna ssh-ed25519 !",
		"anna ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAAQA=",
		"anna $0",
		"anna $1=",
		"anna $1 a\033[31mb",
		"anna $1 a\177",
		"anna $1 \xff",
		"# \033",
		"anna command=\"x\" $1",
		"anna $1\r",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		auto_buf struct buf text = {.max = 4096};
		auto_approvers struct approvers a = {0};
		struct err err = {0};

		buf_add_str(&text, "bob may=refund $0\n");
		buf_add_str(&text, bad[i]);
		buf_add_str(&text, "\n# end\n");
		buf_add_byte(&text, 0);
		if (read_text((const char *)text.p, &a, &err) != -EINVAL)
			fail_msg("taken: %s", bad[i]);
		if (strstr(err.text, "line 2") == NULL)
			fail_msg("%s: %s", bad[i], err.text);
		assert_null(a.a);
	}
}

static void
what_is_cut_off_is_no_file(void **state)
{
	auto_buf struct buf file = {.max = 4096};
	struct err err;

	(void)state;
	put(&file, "bob may=refund $0\nanna may=refund $1\n");
	for (size_t n = 1; n < file.n; n++) {
		auto_approvers struct approvers a = {0};
		bool line = file.p[n - 1] == '\n';

		assert_int_equal(approvers_read(view_of(file.p, n), &a, &err), line ? 0 : -EINVAL);
	}
	buf_add_byte(&file, 0);
	struct approvers a = {0};
	assert_int_equal(approvers_read(buf_view(&file), &a, &err), -EINVAL);
}

static void
bounds(void **state)
{
	auto_buf struct buf file = {.max = APPROVERS_BYTES_MAX + 1};
	struct approvers a = {0};
	struct err err;

	(void)state;
	for (unsigned i = 0; i < APPROVERS_MAX; i++)
		buf_add_str(&file, "#\n");
	assert_int_equal(approvers_read(buf_view(&file), &a, &err), 0);
	approvers_done(&a);
	buf_add_str(&file, "#\n");
	assert_int_equal(approvers_read(buf_view(&file), &a, &err), -EINVAL);
	buf_clear(&file);
	while (file.n <= APPROVERS_BYTES_MAX)
		buf_add_byte(&file, '\n');
	assert_int_equal(approvers_read(buf_view(&file), &a, &err), -EINVAL);
	buf_clear(&file);
	put(&file, "anna $0 ");
	while (file.n < APPROVER_LINE_MAX)
		buf_add_byte(&file, 'x');
	buf_add_str(&file, "\n");
	assert_int_equal(approvers_read(buf_view(&file), &a, &err), 0);
	approvers_done(&a);
	file.n--;
	buf_add_str(&file, "x\n");
	assert_int_equal(approvers_read(buf_view(&file), &a, &err), -EINVAL);
}

static void
C1_at_its_millisecond_an_approver_is_expired(void **state)
{
	auto_approvers struct approvers a = {0};
	struct err err;

	(void)state;
	assert_int_equal(
		read_text("anna valid-until=2026-11-29T16:13:04Z $0\nbob $1\n", &a, &err), 0);
	assert_true(approver_valid(&a.a[0], 1795968783999));
	assert_false(approver_valid(&a.a[0], 1795968784000));
	assert_false(approver_valid(&a.a[0], 1795968784001));
	assert_true(approver_valid(&a.a[1], UINT64_MAX));
}

static void
times(void **state)
{
	static const struct {
		const char *text;
		uint64_t ms;
	} rows[] = {{"1970-01-01T00:00:00Z", 0}, {"2000-02-29T12:00:00Z", 951825600000},
		{"2100-03-01T00:00:00Z", 4107542400000}, {"9999-12-31T23:59:59Z", 253402300799000}};
	uint64_t ms;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(approver_time(view_str(rows[i].text), &ms), 0);
		assert_int_equal(ms, rows[i].ms);
	}
	assert_int_equal(approver_time(view_str("2100-02-29T00:00:00Z"), &ms), -EINVAL);
	assert_int_equal(approver_time(view_str("2026-04-31T00:00:00Z"), &ms), -EINVAL);
	assert_int_equal(approver_time(view_str("2026-00-10T00:00:00Z"), &ms), -EINVAL);
	assert_int_equal(approver_time(view_str("2026-01-00T00:00:00Z"), &ms), -EINVAL);
	assert_int_equal(approver_time(view_str("2026-01-99T00:00:00Z"), &ms), -EINVAL);
}

static void
limits(void **state)
{
	static const struct {
		const char *arguments, *amount;
		bool within;
	} rows[] = {
		{"{\"cents\":5000}", "cents", true},
		{"{\"cents\":5001}", "cents", false},
		{"{\"cents\":-5000}", "cents", true},
		{"{\"cents\":-5001}", "cents", false},
		{"{\"cents\":\"1\"}", "cents", false},
		{"{\"cents\":[1]}", "cents", false},
		{"{\"cents\":1,\"items\":4}", "cents", false},
		{"{\"cents\":1,\"items\":3}", "cents", true},
		{"{\"a\":{\"cents\":9999},\"cents\":1}", "cents", true},
		{"{\"text\":\"hello\"}", "", true},
		{"{\"euros\":1}", "euros", false}, /* an amount without a limit for it */
		{"{\"cents\":1", "cents", false},
		{"[]", "cents", false},
		{"", "cents", false},
		{"{\"cents\":1}x", "cents", false},
	};
	auto_approvers struct approvers a = {0};
	struct err err;

	(void)state;
	assert_int_equal(read_text("anna up-to=cents:5000,items:3 $0\nbob $1\n", &a, &err), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (approver_within(&a.a[0], view_str(rows[i].arguments),
			    view_str(rows[i].amount)) != rows[i].within)
			fail_msg("%s of %s", rows[i].arguments, rows[i].amount);
	assert_true(approver_within(&a.a[1], view_str("{\"cents\":99999}"), view_str("cents")));
}

static void
D6_a_person_is_known_by_principal_and_by_name(void **state)
{
	static const struct {
		const char *who;
		bool is;
	} rows[] = {{"uid:1000", true}, {"token:dml_ab12", true}, {"dml_ab12", true},
		{"anna", true}, {"user:anna", true}, {"uid:100", false}, {"uid:10000", false},
		{"1000", false}, {"token:dml_ab1", false}, {"annab", false}, {"", false},
		{"sandbox:sb_0123456789abcdef", false}, {"user:bob", false}};
	auto_approvers struct approvers a = {0};
	struct err err;

	(void)state;
	assert_int_equal(read_text("anna principal=uid:1000,token:dml_ab12 $0\n", &a, &err), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (approver_is(&a.a[0], view_str(rows[i].who)) != rows[i].is)
			fail_msg("%s", rows[i].who);
}

static void
roles(void **state)
{
	const struct view lead = view_str("lead"),
			  both[] = {view_str("audit"), view_str("support")}, none = view_str("");
	auto_approvers struct approvers a = {0};
	struct err err;

	(void)state;
	assert_int_equal(read_text("anna role=support $0\n", &a, &err), 0);
	assert_true(approver_has_role(&a.a[0], NULL, 0));
	assert_true(approver_has_role(&a.a[0], both, 2));
	assert_false(approver_has_role(&a.a[0], &lead, 1));
	assert_false(approver_has_role(&a.a[0], &none, 1));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_file),
		cmocka_unit_test(an_empty_file_is_one_without_approvers),
		cmocka_unit_test(one_bad_line_spoils_the_file),
		cmocka_unit_test(what_is_cut_off_is_no_file),
		cmocka_unit_test(bounds),
		cmocka_unit_test(C1_at_its_millisecond_an_approver_is_expired),
		cmocka_unit_test(times),
		cmocka_unit_test(limits),
		cmocka_unit_test(D6_a_person_is_known_by_principal_and_by_name),
		cmocka_unit_test(roles),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
