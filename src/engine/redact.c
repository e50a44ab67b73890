/* SPDX-License-Identifier: Apache-2.0 */
/* Redaction by the patterns of redact.def; see redact.h. One pass from left to right, no backtracking. */
#include "engine/redact.h"

#include "lib/base/utf8.h"

#include <strings.h>

/* What is looked at; far more than what is kept. */
enum { LOOKED_AT = 16384, NAME_LONGEST = 64 };

static const char blot[] = "[redacted]";

static const char *const names[] = {
#define NAME(part) part,
#define HEADER(name)
#define SHAPE(prefix, n)
#define SCHEME(word)
#define TAIL(part)
#define OPTION(program, letter, apart)
#include "engine/redact.def"
#undef NAME
#undef HEADER
#undef SCHEME
#undef SHAPE
#undef TAIL
#undef OPTION
};

static const char *const headers[] = {
#define NAME(part)
#define HEADER(name) name,
#define SHAPE(prefix, n)
#define SCHEME(word)
#define TAIL(part)
#define OPTION(program, letter, apart)
#include "engine/redact.def"
#undef NAME
#undef HEADER
#undef SCHEME
#undef SHAPE
#undef TAIL
#undef OPTION
};

static const struct {
	const char *prefix;
	size_t more;
} shapes[] = {
#define NAME(part)
#define HEADER(name)
#define SHAPE(prefix, n) {prefix, n},
#define SCHEME(word)
#define TAIL(part)
#define OPTION(program, letter, apart)
#include "engine/redact.def"
#undef NAME
#undef HEADER
#undef SCHEME
#undef SHAPE
#undef TAIL
#undef OPTION
};

static const char *const schemes[] = {
#define NAME(part)
#define HEADER(name)
#define SHAPE(prefix, n)
#define SCHEME(word) word,
#define TAIL(part)
#define OPTION(program, letter, apart)
#include "engine/redact.def"
#undef NAME
#undef HEADER
#undef SCHEME
#undef SHAPE
#undef TAIL
#undef OPTION
};

static const char *const tails[] = {
#define NAME(part)
#define HEADER(name)
#define SHAPE(prefix, n)
#define SCHEME(word)
#define TAIL(part) part,
#define OPTION(program, letter, apart)
#include "engine/redact.def"
#undef NAME
#undef HEADER
#undef SCHEME
#undef SHAPE
#undef TAIL
#undef OPTION
};

static const struct {
	const char *program;
	uint8_t letter;
	bool apart; /* the value may be the next word */
} options[] = {
#define NAME(part)
#define HEADER(name)
#define SHAPE(prefix, n)
#define SCHEME(word)
#define TAIL(part)
#define OPTION(program, letter, apart) {program, letter, apart},
#include "engine/redact.def"
#undef NAME
#undef HEADER
#undef SCHEME
#undef SHAPE
#undef TAIL
#undef OPTION
};

struct scan {
	struct view in;
	size_t at;
	struct buf *out;
	uint32_t programs; /* bit i: the program of options[i] was named */
};

_Static_assert(ARRAY_LEN(options) <= 32, "a bit for each");

static uint8_t
peek(const struct scan *s, size_t i)
{
	return i < s->in.n ? s->in.p[i] : 0;
}

static uint8_t
lower(uint8_t c)
{
	if (c >= 'A' && c <= 'Z')
		return (uint8_t)(c + 32);
	return c == '-' ? '_' : c;
}

static bool
is_word(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

static bool
is_token(uint8_t c)
{
	return is_word(c) || c == '.' || c == '/' || c == '+' || c == '=' || c == '~';
}

static bool
is_quote(uint8_t c)
{
	return c == '"' || c == '\'';
}

static size_t
run(const struct scan *s, size_t i, bool (*is)(uint8_t))
{
	while (i < s->in.n && is(s->in.p[i]))
		i++;
	return i;
}

static size_t
skip_blanks(const struct scan *s, size_t i)
{
	while (peek(s, i) == ' ')
		i++;
	return i;
}

static void
blot_to(struct scan *s, size_t end)
{
	buf_add_str(s->out, blot);
	s->at = end;
}

static void
copy_to(struct scan *s, size_t end)
{
	buf_add(s->out, s->in.p + s->at, end - s->at);
	s->at = end;
}

static bool
has_at(const struct scan *s, size_t i, const char *what)
{
	size_t n = strlen(what);

	return i + n <= s->in.n && memcmp(s->in.p + i, what, n) == 0;
}

static size_t
find(const struct scan *s, size_t i, const char *what)
{
	for (; i < s->in.n; i++)
		if (has_at(s, i, what))
			return i;
	return s->in.n;
}

/* -----BEGIN ... PRIVATE KEY----- up to the end of its last line. */
static bool
take_pem(struct scan *s)
{
	size_t head, tail;

	if (!has_at(s, s->at, "-----BEGIN "))
		return false;
	head = find(s, s->at + 11, "-----");
	if (find(s, s->at, "PRIVATE KEY") >= head)
		return false;
	tail = find(s, head, "-----END ");
	tail = tail < s->in.n ? find(s, tail + 9, "-----") : tail;
	blot_to(s, tail + 5 < s->in.n ? tail + 5 : s->in.n);
	return true;
}

static bool
take_shape(struct scan *s, size_t end)
{
	size_t token = run(s, end, is_token);

	for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
		if (has_at(s, s->at, shapes[i].prefix) &&
			token - s->at >= strlen(shapes[i].prefix) + shapes[i].more) {
			blot_to(s, token);
			return true;
		}
	return false;
}

static bool
word_is(const struct scan *s, size_t end, const char *what)
{
	size_t n = strlen(what);

	if (end - s->at != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (lower(s->in.p[s->at + i]) != (uint8_t)what[i])
			return false;
	return true;
}

static bool
word_has(const struct scan *s, size_t end, const char *what)
{
	size_t n = strlen(what);

	for (size_t i = s->at; i + n <= end; i++) {
		size_t k = 0;

		while (k < n && lower(s->in.p[i + k]) == (uint8_t)what[k])
			k++;
		if (k == n)
			return true;
	}
	return false;
}

/* "Bearer xyz", "Basic xyz" */
static bool
take_scheme(struct scan *s, size_t end)
{
	size_t value = skip_blanks(s, end), stop = run(s, value, is_token);

	for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
		if (word_is(s, end, schemes[i]) && value > end && stop - value >= 6) {
			copy_to(s, value);
			blot_to(s, stop);
			return true;
		}
	return false;
}

/* The end of $(...), or of the whole text. i: behind the opening parenthesis. */
static size_t
substitution_end(const struct scan *s, size_t i)
{
	for (unsigned depth = 1; i < s->in.n; i++) {
		depth += s->in.p[i] == '(';
		depth -= s->in.p[i] == ')';
		if (depth == 0)
			return i + 1;
	}
	return s->in.n;
}

/* A quote that the text around the value opened: nothing of a value follows it. */
static bool
closes(const struct scan *s, size_t i)
{
	uint8_t next = peek(s, i + 1);

	return next == 0 || next == ' ' || next == ';' || next == ')' || next == '|' ||
	       next == '}' || next == ']';
}

/* Behind the closing quote of a part of a bare value, or of the text. i: the opening one. */
static size_t
quoted_end(const struct scan *s, size_t i)
{
	uint8_t quote = s->in.p[i];

	for (i++; i < s->in.n; i++) {
		if (quote == '"' && s->in.p[i] == '\\')
			i++;
		else if (s->in.p[i] == quote)
			return i + 1;
	}
	return s->in.n;
}

/*
 * Where a value without quotes that starts at i ends: before a blank that nothing protects, or before the
 * quote that closes what is around it. What a shell would put together is one value: a\ b, a"b c", $(a b).
 */
static size_t
bare_end(const struct scan *s, size_t i)
{
	while (i < s->in.n && s->in.p[i] != ' ') {
		if (s->in.p[i] == '\\' && !is_quote(peek(s, i + 1)))
			i += 2;
		else if (s->in.p[i] == '\\' && closes(s, i + 1))
			return i;
		else if (s->in.p[i] == '\\')
			i += 2;
		else if (has_at(s, i, "$("))
			i = substitution_end(s, i + 2);
		else if (s->in.p[i] == '`')
			i = quoted_end(s, i);
		else if (is_quote(s->in.p[i]) && closes(s, i))
			return i;
		else if (is_quote(s->in.p[i]))
			i = quoted_end(s, i);
		else
			i++;
	}
	return i < s->in.n ? i : s->in.n;
}

/* Where a value ends that stands in quotes with so many backslashes before each. */
static size_t
inner_end(const struct scan *s, size_t i, uint8_t quote, size_t slashes)
{
	size_t run = 0;

	for (; i < s->in.n; i++) {
		if (has_at(s, i, "$(") && quote == '"') {
			i = substitution_end(s, i + 2) - 1;
			run = 0;
		} else if (s->in.p[i] == quote && run <= slashes) {
			return i - run;
		} else {
			run = s->in.p[i] == '\\' ? run + 1 : 0;
		}
	}
	return i;
}

/* The value of a header: to the end of the quotes around it. */
static size_t
line_end(const struct scan *s, size_t i)
{
	while (i < s->in.n && !is_quote(s->in.p[i]))
		i++;
	return i;
}

/* Behind backslashes and a quote; *ret_quote 0 and i itself when there is none. */
static size_t
skip_quote(const struct scan *s, size_t i, uint8_t *ret_quote, size_t *ret_slashes)
{
	size_t k = i;

	while (peek(s, k) == '\\')
		k++;
	*ret_quote = is_quote(peek(s, k)) ? s->in.p[k] : 0;
	*ret_slashes = k - i;
	return *ret_quote != 0 ? k + 1 : i;
}

/* Blots the value at s->at, with or without quotes around it. */
static void
blot_value(struct scan *s, bool header)
{
	uint8_t quote;
	size_t slashes, i = skip_quote(s, s->at, &quote, &slashes);

	copy_to(s, i);
	if (quote != 0)
		i = inner_end(s, i, quote, slashes);
	else
		i = header ? line_end(s, i) : bare_end(s, i);
	if (i > s->at)
		blot_to(s, i);
}

/* The whole name, or its part behind the last '_'. */
static bool
word_tail(const struct scan *s, size_t end, const char *what)
{
	size_t n = strlen(what), from = end - n;

	if (end - s->at < n || (from > s->at && lower(s->in.p[from - 1]) != '_'))
		return false;
	for (size_t i = 0; i < n; i++)
		if (lower(s->in.p[from + i]) != (uint8_t)what[i])
			return false;
	return true;
}

static bool
names_secret(const struct scan *s, size_t end)
{
	for (size_t k = 0; k < ARRAY_LEN(names); k++)
		if (word_has(s, end, names[k]))
			return true;
	for (size_t k = 0; k < ARRAY_LEN(tails); k++)
		if (word_tail(s, end, tails[k]))
			return true;
	return false;
}

/* name=value, name: value, "name": "value", --name value; the quotes may have backslashes */
static bool
take_name(struct scan *s, size_t end)
{
	bool header = false, option = peek(s, s->at) == '-';
	uint8_t quote;
	size_t slashes, i;

	for (size_t k = 0; k < ARRAY_LEN(headers) && !header; k++)
		header = word_has(s, end, headers[k]);
	if (!header && !names_secret(s, end))
		return false;
	i = skip_blanks(s, skip_quote(s, end, &quote, &slashes));
	if (peek(s, i) == '=' || peek(s, i) == ':')
		i = skip_blanks(s, i + 1);
	else if (!option || i == end)
		return false;
	copy_to(s, i);
	blot_value(s, header);
	return true;
}

/* curl -u name:password, also without the blank */
static bool
take_user(struct scan *s, size_t end)
{
	bool glued = !word_is(s, end, "_u") && has_at(s, s->at, "-u");
	size_t value = glued ? s->at + 2 : skip_blanks(s, end), stop, colon;

	if (!glued && !((word_is(s, end, "_u") || word_is(s, end, "__user")) && value > end))
		return false;
	stop = bare_end(s, value);
	for (colon = value; colon < stop && s->in.p[colon] != ':'; colon++)
		continue;
	if (colon == stop)
		return false;
	copy_to(s, colon + 1);
	blot_to(s, stop);
	return true;
}

/* mysql -pSECRET, sshpass -p SECRET: only behind the program that means it so */
static bool
take_option(struct scan *s, size_t end)
{
	size_t value;

	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		if (word_is(s, end, options[i].program))
			s->programs |= 1U << i;
		if ((s->programs >> i & 1) == 0 || peek(s, s->at) != '-' ||
			peek(s, s->at + 1) != options[i].letter)
			continue;
		value = s->at + 2;
		if (peek(s, value) == ' ' && options[i].apart)
			value = skip_blanks(s, value);
		if (value >= s->in.n || s->in.p[value] == ' ')
			continue;
		copy_to(s, value);
		blot_value(s, false);
		return true;
	}
	return false;
}

/* ://name:password@ */
static bool
take_userinfo(struct scan *s)
{
	size_t i = s->at + 3, at = 0;

	if (!has_at(s, s->at, "://"))
		return false;
	for (; i < s->in.n && s->in.p[i] != '/' && s->in.p[i] != ' ' && !is_quote(s->in.p[i]); i++)
		if (s->in.p[i] == '@')
			at = i;
	if (at == 0)
		return false;
	copy_to(s, s->at + 3);
	blot_to(s, at);
	return true;
}

static void
scan(struct scan *s)
{
	while (s->at < s->in.n) {
		size_t end;

		if (take_pem(s) || take_userinfo(s))
			continue;
		if (!is_word(s->in.p[s->at])) {
			copy_to(s, s->at + 1);
			continue;
		}
		end = run(s, s->at, is_word);
		if (!take_shape(s, end) && !take_scheme(s, end) && !take_user(s, end) &&
			!take_option(s, end) && !take_name(s, end))
			copy_to(s, end);
	}
}

/* One line of valid UTF-8 without controls and noncharacters. */
static void
clean(struct view in, struct buf *out)
{
	while (in.n > 0 && out->n < LOOKED_AT) {
		uint32_t point = 0;
		int n = utf8_next(in, &point);

		if (n < 0 || utf8_noncharacter(point))
			buf_add_str(out, "\xef\xbf\xbd");
		else if (point < 0x20 || (point >= 0x7f && point < 0xa0))
			buf_add_byte(out, ' ');
		else
			buf_add(out, in.p, (size_t)n);
		in = view_skip(in, (size_t)(n < 0 ? -n : n));
	}
}

/* At most max bytes, at a whole character. */
static void
cut(struct view text, bool more, size_t max, struct buf *ret)
{
	size_t n = text.n;

	if (n <= max && !more) {
		buf_add_view(ret, text);
		return;
	}
	n = n > max - 3 ? max - 3 : n;
	while (n > 0 && n < text.n && (text.p[n] & 0xc0) == 0x80)
		n--;
	buf_add(ret, text.p, n);
	buf_add_str(ret, "...");
}

static void
redact(struct view looked, bool more, size_t max, struct buf *ret)
{
	auto_buf struct buf out;
	struct scan s = {.in = looked, .out = &out};

	/* A blot is longer than the shortest secret. */
	buf_init(&out, LOOKED_AT * 8);
	scan(&s);
	if (buf_check(&out) < 0)
		buf_clear(&out); /* rather nothing than too much */
	cut(buf_view(&out), more, max, ret);
}

void
redact_text(struct view text, size_t max, struct buf *ret)
{
	auto_buf struct buf looked;

	buf_init(&looked, LOOKED_AT + 8);
	clean(text, &looked);
	redact(buf_view(&looked), text.n > LOOKED_AT, max, ret);
}

/* A word with a blank in it is shown in quotes. */
void
redact_argv(struct view argv, size_t max, struct buf *ret)
{
	auto_buf struct buf joined;
	bool one = argv.n > 0 && strnlen((const char *)argv.p, argv.n) + 1 >= argv.n, first = true;

	buf_init(&joined, argv.n * 2 + 8);
	while (argv.n > 0) {
		size_t n = strnlen((const char *)argv.p, argv.n);
		struct view word = view_of(argv.p, n);
		bool quoted = !one && (n == 0 || view_has(word, ' '));

		if (!first)
			buf_add_byte(&joined, ' ');
		if (quoted)
			buf_add_byte(&joined, '\'');
		buf_add_view(&joined, word);
		if (quoted)
			buf_add_byte(&joined, '\'');
		first = false;
		argv = view_skip(argv, n + 1);
	}
	redact_text(buf_view(&joined), max, ret);
}
