/* SPDX-License-Identifier: Apache-2.0 */
/* Refusals; see engine.h. */
#include "engine/engine.h"

#include "lib/base/log.h"

#include <errno.h>

/* Faults of the host that the caller should hear of in their own words. */
static void
fault(const struct err *err, enum error *ret_error, const char **ret_text)
{
	if (err->code == -ENOSPC) {
		*ret_error = ERROR_UNAVAILABLE;
		*ret_text = "the disk of the host is full; nothing was done, because it could not "
			    "be recorded";
		return;
	}
	*ret_error = ERROR_INTERNAL;
	*ret_text = "the engine failed at this request; its log says more";
}

/* No rule: who would have to be asked, or what would have to be written, is not there. Nothing was done, and it may be tried again. */
static bool
passes(enum denial denial)
{
	return denial == DENIAL_BROKER_UNAVAILABLE || denial == DENIAL_AUDIT_UNAVAILABLE;
}

void
answer_refused(struct engine *e, struct reply to, const struct err *err)
{
	enum error error = ERROR_INTERNAL;
	const char *text = err->text;
	enum denial denial = DENIAL_NONE;
	uint32_t retry_after_ms = 0;

	if (err->code < -DENIAL_BASE) {
		denial = (enum denial)(-err->code - DENIAL_BASE);
		must(denial < DENIAL_MAX);
		error = passes(denial) ? ERROR_UNAVAILABLE : ERROR_DENIED;
	} else if (err->code < -REFUSAL_BASE) {
		error = (enum error)(-err->code - REFUSAL_BASE);
		must(error_info(error) != NULL);
	} else {
		log_line("request refused: %s", err->text);
		fault(err, &error, &text);
	}
	if (error == ERROR_RATE || error == ERROR_UNAVAILABLE)
		retry_after_ms = 1000;
	REPLY(e, to, REFUSED, refused,
		{.error = (uint16_t)error,
			.denial = denial,
			.retry_after_ms = retry_after_ms,
			.text = view_str(text)});
}
