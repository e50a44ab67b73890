/* SPDX-License-Identifier: Apache-2.0 */
/* What stands in reason.def and credential.def; see rules.h. */
#include "lib/egress/rules.h"

static const struct {
	unsigned status;
	const char *sentence;
} reasons[] = {
#define EGRESS_REASON(NAME, status, sentence) [EGRESS_REASON_##NAME] = {status, sentence},
#include "lib/egress/reason.def"
#undef EGRESS_REASON
};

_Static_assert(ARRAY_LEN(reasons) == EGRESS_REASON_MAX, "each reason has a row");

unsigned
egress_reason_status(enum egress_reason reason)
{
	must(reason < EGRESS_REASON_MAX);
	return reasons[reason].status;
}

const char *
egress_reason_says(enum egress_reason reason)
{
	must(reason < EGRESS_REASON_MAX);
	return reasons[reason].sentence;
}

enum egress_reason
egress_reason_of_dial(enum dial dial, enum egress_reason otherwise)
{
	switch (dial) {
	case DIAL_NO_NAME:
		return EGRESS_REASON_DNS_FAIL;
	case DIAL_ADDRESS:
		return EGRESS_REASON_DNS_PRIVATE;
	case DIAL_MIXED:
		return EGRESS_REASON_DNS_MIXED;
	case DIAL_TIMEOUT:
		return EGRESS_REASON_TIMEOUT;
	case DIAL_UNREACHABLE:
		return EGRESS_REASON_UNREACHABLE;
	case DIAL_CONNECTED:
	case DIAL_NOT_LISTED:
	case DIAL_BUSY:
	case DIAL_MAX:
		break;
	}
	return otherwise;
}

static const char *const fields[] = {
#define CREDENTIAL_FIELD(name) name,
#define CREDENTIAL_PARAMETER(name)
#include "lib/egress/credential.def"
#undef CREDENTIAL_FIELD
#undef CREDENTIAL_PARAMETER
};

static const char *const parameters[] = {
#define CREDENTIAL_FIELD(name)
#define CREDENTIAL_PARAMETER(name) name,
#include "lib/egress/credential.def"
#undef CREDENTIAL_FIELD
#undef CREDENTIAL_PARAMETER
};

/* `word` is lower-case with '-'. */
static bool
is_word(struct view name, const char *word)
{
	size_t n = strlen(word);

	if (name.n != n)
		return false;
	for (size_t i = 0; i < n; i++) {
		uint8_t c = name.p[i];

		if (c >= 'A' && c <= 'Z')
			c |= 0x20;
		if (c == '_')
			c = '-';
		if (c != (uint8_t)word[i])
			return false;
	}
	return true;
}

static bool
is_one_of(struct view name, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is_word(name, words[i]))
			return true;
	return false;
}

bool
egress_field_is_credential(struct view name)
{
	return is_one_of(name, fields, ARRAY_LEN(fields));
}

bool
egress_parameter_is_credential(struct view name)
{
	return is_one_of(name, parameters, ARRAY_LEN(parameters));
}
