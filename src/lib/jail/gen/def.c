/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads syscall lists; def.h has the grammar. Strict: what is not in the grammar stops the
 * build with file and line. libseccomp is used for the numbers of the calls only.
 */
#include "lib/jail/gen/def.h"

#include <linux/netlink.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <sys/personality.h>

#include "lib/base/num.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum token {
	T_END,
	T_WORD,
	T_NUMBER,
	T_STRING,
	T_OPEN,
	T_CLOSE,
	T_COMMA,
	T_AND,
	T_OR,
	T_BOTH,
	T_EQ,
	T_NE
};

struct lex {
	const char *file; /* borrowed */
	const char *dir;  /* borrowed; NULL: no INCLUDE here */
	struct view rest;
	unsigned int line;
	enum token token;
	struct view word; /* of T_WORD, T_NUMBER, T_STRING (without quotes) */
};

static const struct {
	const char *name;
	uint32_t value;
} constants[] = {
#define CONSTANT(c) {#c, (uint32_t)(c)},
#include "lib/jail/gen/constants.def"
#undef CONSTANT
};

static const struct {
	const char *text;
	enum token token;
} marks[] = {
	/* The longer first. */
	{"&&", T_BOTH},
	{"==", T_EQ},
	{"!=", T_NE},
	{"(", T_OPEN},
	{")", T_CLOSE},
	{",", T_COMMA},
	{"&", T_AND},
	{"|", T_OR},
};

static int
lex_fail(const struct lex *x, const char *what, struct err *err)
{
	return err_set(err, -EINVAL, "%s:%u: %s", x->file, x->line, what);
}

static void
lex_skip(struct lex *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (x->rest.p[i] == '\n')
			x->line++;
	x->rest = view_skip(x->rest, n);
}

static bool
word_byte(uint8_t c)
{
	return isalnum(c) || c == '_';
}

/* Blanks and comments; an unfinished comment is an error. */
static int
lex_blank(struct lex *x, struct err *err)
{
	while (x->rest.n != 0) {
		const uint8_t *end;

		if (view_has(view_str(" \t\n"), x->rest.p[0])) {
			lex_skip(x, 1);
			continue;
		}
		if (!view_starts(x->rest, "/*"))
			return 0;
		end = memmem(x->rest.p + 2, x->rest.n - 2, "*/", 2);
		if (end == NULL)
			return lex_fail(x, "comment without end", err);
		lex_skip(x, (size_t)(end - x->rest.p) + 2);
	}
	return 0;
}

static int
lex_next(struct lex *x, struct err *err)
{
	size_t n = 0;
	int rc = lex_blank(x, err);

	if (rc != 0)
		return rc;
	x->word = view_of(NULL, 0);
	x->token = T_END;
	if (x->rest.n == 0)
		return 0;
	if (word_byte(x->rest.p[0])) {
		while (n < x->rest.n && word_byte(x->rest.p[n]))
			n++;
		x->word = view_of(x->rest.p, n);
		x->token = isdigit(x->rest.p[0]) ? T_NUMBER : T_WORD;
		lex_skip(x, n);
		return 0;
	}
	if (x->rest.p[0] == '"') {
		for (n = 1; n < x->rest.n && x->rest.p[n] != '"' && x->rest.p[n] != '\n';)
			n++;
		if (n == x->rest.n || x->rest.p[n] != '"')
			return lex_fail(x, "string without end", err);
		x->word = view_of(x->rest.p + 1, n - 1);
		x->token = T_STRING;
		lex_skip(x, n + 1);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		if (view_starts(x->rest, marks[i].text)) {
			x->token = marks[i].token;
			lex_skip(x, strlen(marks[i].text));
			return 0;
		}
	return lex_fail(x, "a character that no list has", err);
}

/* The current token must be t; moves behind it. */
static int
lex_take(struct lex *x, enum token t, const char *what, struct err *err)
{
	if (x->token != t)
		return err_set(err, -EINVAL, "%s:%u: expected %s", x->file, x->line, what);
	return lex_next(x, err);
}

static int
parse_number(const struct lex *x, uint32_t *ret, struct err *err)
{
	uint64_t n = 0;

	if (view_starts(x->word, "0x")) {
		if (x->word.n < 3 || x->word.n > 10)
			return lex_fail(x, "a hexadecimal number has 1 to 8 digits", err);
		for (size_t i = 2; i < x->word.n; i++) {
			int c = tolower(x->word.p[i]);

			if (!isxdigit(c))
				return lex_fail(x, "not a number", err);
			n = n << 4 | (uint64_t)(isdigit(c) ? c - '0' : c - 'a' + 10);
		}
	} else if (num_u64(x->word, UINT32_MAX, &n) != 0) {
		return lex_fail(x, "not a number of 32 bits", err);
	}
	*ret = (uint32_t)n;
	return 0;
}

static int
parse_atom(struct lex *x, uint32_t *ret, struct err *err)
{
	uint32_t v = 0;
	bool found = false;

	if (x->token == T_NUMBER) {
		int rc = parse_number(x, &v, err);

		if (rc != 0)
			return rc;
		found = true;
	}
	for (size_t i = 0; x->token == T_WORD && i < ARRAY_LEN(constants); i++)
		if (view_is(x->word, constants[i].name)) {
			v = constants[i].value;
			found = true;
		}
	if (!found)
		return lex_fail(x, "expected a number or a name of constants.def", err);
	*ret = v;
	return lex_next(x, err);
}

/* A, or (A | B ...); the brackets are what C wants beside ==. */
static int
parse_value(struct lex *x, uint32_t *ret, struct err *err)
{
	uint32_t v = 0, more = 0;
	int rc;

	if (x->token != T_OPEN)
		return parse_atom(x, ret, err);
	do {
		if ((rc = lex_next(x, err)) != 0 || (rc = parse_atom(x, &more, err)) != 0)
			return rc;
		v |= more;
	} while (x->token == T_OR);
	if ((rc = lex_take(x, T_CLOSE, "')'", err)) != 0)
		return rc;
	*ret = v;
	return 0;
}

static int
parse_arg(struct lex *x, uint32_t *ret, struct err *err)
{
	uint32_t n = 0;
	int rc;

	if (x->token != T_WORD || !view_is(x->word, "ARG"))
		return lex_fail(x, "expected ARG(0) to ARG(5)", err);
	if ((rc = lex_next(x, err)) != 0 || (rc = lex_take(x, T_OPEN, "'('", err)) != 0)
		return rc;
	if (x->token != T_NUMBER || parse_number(x, &n, err) != 0 || n > 5)
		return lex_fail(x, "expected ARG(0) to ARG(5)", err);
	if ((rc = lex_next(x, err)) != 0)
		return rc;
	*ret = n;
	return lex_take(x, T_CLOSE, "')'", err);
}

static int
parse_term(struct lex *x, struct def_cond *c, struct err *err)
{
	int rc;

	*c = (struct def_cond){.mask = UINT32_MAX};
	if (x->token == T_OPEN) {
		if ((rc = lex_next(x, err)) != 0 || (rc = parse_arg(x, &c->arg, err)) != 0 ||
			(rc = lex_take(x, T_AND, "'&'", err)) != 0 ||
			(rc = parse_value(x, &c->mask, err)) != 0 ||
			(rc = lex_take(x, T_CLOSE, "')'", err)) != 0)
			return rc;
	} else if ((rc = parse_arg(x, &c->arg, err)) != 0) {
		return rc;
	}
	c->differs = x->token == T_NE;
	if (!c->differs && x->token != T_EQ)
		return lex_fail(x, "expected == or !=", err);
	if ((rc = lex_next(x, err)) != 0 || (rc = parse_value(x, &c->value, err)) != 0)
		return rc;
	if ((c->value & ~c->mask) != 0)
		return lex_fail(x, "the value has bits outside the mask, so this never holds", err);
	return 0;
}

static int
parse_conds(struct lex *x, struct def_row *row, struct err *err)
{
	int rc;

	for (;;) {
		if (row->conds_n == DEF_CONDS_MAX)
			return lex_fail(x, "too many terms", err);
		if ((rc = parse_term(x, &row->conds[row->conds_n++], err)) != 0)
			return rc;
		if (x->token != T_BOTH)
			return 0;
		if ((rc = lex_next(x, err)) != 0)
			return rc;
	}
}

/* A number of this architecture, or -1 for a call that only others have. */
static int
parse_call(struct lex *x, const struct def *d, int *ret, struct err *err)
{
	char name[64];
	int nr;

	if (x->token != T_WORD || x->word.n >= sizeof(name))
		return lex_fail(x, "expected the name of a syscall", err);
	(void)snprintf(name, sizeof(name), "%.*s", VIEW_ARGS(x->word));
	nr = seccomp_syscall_resolve_name_arch(d->arch, name);
	if (nr == __NR_SCMP_ERROR)
		return err_set(
			err, -EINVAL, "%s:%u: no syscall is called '%s'", x->file, x->line, name);
	if (nr >= DEF_NR_END)
		return lex_fail(x, "the number of this syscall is too high", err);
	*ret = nr < 0 ? -1 : nr;
	return lex_next(x, err);
}

static int
parse_errno(struct lex *x, uint32_t *ret_action, struct err *err)
{
	uint32_t e = 0;
	int rc = parse_atom(x, &e, err);

	if (rc != 0)
		return rc;
	if (e == 0 || e > 4095)
		return lex_fail(x, "an errno is 1 to 4095", err);
	*ret_action = SECCOMP_RET_ERRNO | e;
	return 0;
}

/* DEFAULT(...) and FOREIGN(...) behind their '('. */
static int
parse_default(struct lex *x, uint32_t *ret_action, bool *seen, bool may_allow, struct err *err)
{
	uint32_t action;
	int rc;

	if (*seen || x->dir == NULL)
		return lex_fail(x, "one default, and only in the main list", err);
	*seen = true;
	if (x->token != T_WORD)
		return lex_fail(x, "not a default", err);
	if (view_is(x->word, "KILL")) {
		*ret_action = SECCOMP_RET_KILL_PROCESS;
		return lex_next(x, err);
	}
	if (view_is(x->word, "ALLOW") && may_allow) {
		*ret_action = SECCOMP_RET_ALLOW;
		return lex_next(x, err);
	}
	if (!view_is(x->word, "ERRNO"))
		return lex_fail(x, "not a default", err);
	if ((rc = lex_next(x, err)) != 0 || (rc = lex_take(x, T_COMMA, "','", err)) != 0 ||
		(rc = parse_errno(x, &action, err)) != 0)
		return rc;
	*ret_action = action;
	return 0;
}

static bool
conds_equal(const struct def_row *a, const struct def_row *b)
{
	if (a->conds_n != b->conds_n)
		return false;
	for (size_t i = 0; i < a->conds_n; i++) {
		const struct def_cond *c = &a->conds[i], *d = &b->conds[i];

		if (c->arg != d->arg || c->mask != d->mask || c->value != d->value ||
			c->differs != d->differs)
			return false;
	}
	return true;
}

static int
row_add(struct def *d, const struct lex *x, const struct def_row *row, struct err *err)
{
	if (row->nr < 0)
		return 0;
	if (d->rows_n == DEF_ROWS_MAX)
		return lex_fail(x, "too many rows", err);
	for (size_t i = 0; i < d->rows_n; i++)
		if (d->rows[i].nr == row->nr &&
			(d->rows[i].conds_n == 0 || conds_equal(&d->rows[i], row)))
			return lex_fail(x, "an earlier row decides this call already", err);
	d->rows[d->rows_n++] = *row;
	return 0;
}

/* ALLOW, KILL, ERRNO, and the same with _IF, behind their '('. */
static int
parse_row(struct lex *x, struct def *d, struct view verb, struct err *err)
{
	bool conditional = verb.n > 3 && view_is(view_skip(verb, verb.n - 3), "_IF");
	struct view action = view_of(verb.p, conditional ? verb.n - 3 : verb.n);
	struct def_row row = {0};
	int rc;

	if (view_is(action, "ALLOW")) {
		row.action = SECCOMP_RET_ALLOW;
	} else if (view_is(action, "KILL")) {
		row.action = SECCOMP_RET_KILL_PROCESS;
	} else if (view_is(action, "ERRNO")) {
		if ((rc = parse_errno(x, &row.action, err)) != 0 ||
			(rc = lex_take(x, T_COMMA, "','", err)) != 0)
			return rc;
	} else {
		return lex_fail(x, "unknown row", err);
	}
	if ((rc = parse_call(x, d, &row.nr, err)) != 0)
		return rc;
	if (conditional) {
		if ((rc = lex_take(x, T_COMMA, "','", err)) != 0 ||
			(rc = parse_conds(x, &row, err)) != 0)
			return rc;
	}
	return row_add(d, x, &row, err);
}

static int
parse_include(struct lex *x, struct def *d, struct err *err)
{
	char *path;
	int n, rc;

	if (x->token != T_STRING || x->dir == NULL)
		return lex_fail(x, "INCLUDE(\"file\") stands in the main list", err);
	if (view_has(x->word, '/') || view_has(x->word, '\0'))
		return lex_fail(x, "an included list is named without folders", err);
	if (d->includes_n == DEF_FILES_MAX)
		return lex_fail(x, "too many INCLUDE rows", err);
	path = d->includes[d->includes_n];
	n = snprintf(path, sizeof(d->includes[0]), "%s/%.*s", x->dir, VIEW_ARGS(x->word));
	if (n < 0 || (size_t)n >= sizeof(d->includes[0]))
		return lex_fail(x, "the path of the included list is too long", err);
	d->includes_n++;
	rc = def_read_file(d, path, NULL, err);
	return rc != 0 ? rc : lex_next(x, err);
}

static int
parse_mark(struct lex *x, struct def *d, struct err *err)
{
	struct def_row row = {
		.action = SECCOMP_RET_ERRNO | EL3HLT,
		.conds_n = 1,
		.conds = {{.arg = 0, .mask = UINT32_MAX, .value = d->mark}},
	};
	int rc = parse_call(x, d, &row.nr, err);

	if (rc != 0)
		return rc;
	if (d->has_mark || row.nr < 0)
		return lex_fail(x, "one MARK, on a call that every architecture has", err);
	d->has_mark = true;
	return row_add(d, x, &row, err);
}

static int
parse_line(struct lex *x, struct def *d, struct err *err)
{
	struct view verb = x->word;
	int rc;

	if ((rc = lex_take(x, T_WORD, "a row", err)) != 0 ||
		(rc = lex_take(x, T_OPEN, "'('", err)) != 0)
		return rc;
	if (view_is(verb, "DEFAULT"))
		rc = parse_default(x, &d->unlisted, &d->has_unlisted, true, err);
	else if (view_is(verb, "FOREIGN"))
		rc = parse_default(x, &d->foreign, &d->has_foreign, false, err);
	else if (view_is(verb, "INCLUDE"))
		rc = parse_include(x, d, err);
	else if (view_is(verb, "MARK"))
		rc = parse_mark(x, d, err);
	else if (view_is(verb, "COMPLETE"))
		rc = parse_call(x, d, &d->complete, err);
	else
		rc = parse_row(x, d, verb, err);
	return rc != 0 ? rc : lex_take(x, T_CLOSE, "')'", err);
}

/* FNV-1a: lists are told apart, nobody attacks this. */
static uint32_t
mark_of(const char *name)
{
	uint32_t h = 2166136261u;

	for (const char *s = name; *s != '\0'; s++)
		h = (h ^ (uint8_t)*s) * 16777619u;
	return h;
}

int
def_init(struct def *d, const char *arch, const char *name, struct err *err)
{
	memset(d, 0, sizeof(*d));
	d->complete = -1;
	d->mark = mark_of(name);
	if (view_is(view_str(arch), "x86_64"))
		d->arch = SCMP_ARCH_X86_64;
	else if (view_is(view_str(arch), "aarch64"))
		d->arch = SCMP_ARCH_AARCH64;
	else
		return err_set(err, -ENOTSUP, "no syscall filter for the architecture '%s'", arch);
	return 0;
}

int
def_read_text(struct def *d, const char *name, struct view text, const char *dir, struct err *err)
{
	struct lex x = {.file = name, .dir = dir, .rest = text, .line = 1};
	int rc = lex_next(&x, err);

	while (rc == 0 && x.token != T_END)
		rc = parse_line(&x, d, err);
	return rc;
}

int
def_read_file(struct def *d, const char *path, const char *dir, struct err *err)
{
	auto_free char *text = malloc(DEF_FILE_MAX);
	FILE *f;
	size_t n;
	bool bad;

	if (text == NULL)
		return err_set(err, -ENOMEM, "no memory for %s", path);
	f = fopen(path, "re");
	if (f == NULL)
		return err_errno(err, "cannot open %s", path);
	n = fread(text, 1, DEF_FILE_MAX, f);
	bad = ferror(f) != 0;
	if (fclose(f) != 0 || bad)
		return err_errno(err, "cannot read %s", path);
	if (n == DEF_FILE_MAX)
		return err_set(err, -EFBIG, "%s is larger than a syscall list can be", path);
	return def_read_text(d, path, view_of(text, n), dir, err);
}

int
def_check(const struct def *d, struct err *err)
{
	if (!d->has_unlisted || !d->has_foreign)
		return err_set(err, -EINVAL, "the list names no DEFAULT or no FOREIGN");
	for (int nr = 0; nr <= d->complete; nr++) {
		auto_free char *name = seccomp_syscall_resolve_num_arch(d->arch, nr);
		bool found = name == NULL;

		for (size_t i = 0; i < d->rows_n && !found; i++)
			found = d->rows[i].nr == nr;
		if (!found)
			return err_set(err, -EINVAL, "COMPLETE is broken: no row for '%s'", name);
	}
	return 0;
}
