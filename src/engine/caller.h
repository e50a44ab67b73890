/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who sends a request, and what they may touch. The api only carries the proof (digest of a token,
 * a connection that the engine looked at itself, local.h); the decision is made here, for every request.
 */
#pragma once

#include "engine/engine.h"

enum { PRINCIPAL_TEXT = 96 };

/* In front of the name of one that is a sandbox: "sandbox:sb_...". */
#define PRINCIPAL_SANDBOX "sandbox:"

struct principal {
	enum caller_kind kind;
	char name[64]; /* "uid:0", or the prefix of the token; "engine" for the engine itself */
	char tenant[TENANT_BYTES]; /* of a token; "" of an administrator: all */
	char template[64];         /* a token for one template only; else "" */
	bool admin;
	uint64_t expires_ms; /* of the token; 0 = never */
};

/* As records of actions name people: "uid:1000" or "token:dml_..." into ret[PRINCIPAL_TEXT]. */
void principal_text(const struct principal *p, char *ret);

/*
 * Who answers for somebody of this text: for a token that another made the first of the line, else a person would make themselves a second
 * token to approve what they asked for with it. `text` may be `ret`.
 */
int principal_first(struct engine *e, const char *text, char ret[static PRINCIPAL_TEXT],
	struct err *err) MUST_CHECK;

/* What the engine does by itself. */
extern const struct principal principal_engine;

int caller_find(struct engine *e, const struct caller *c, struct principal *ret,
	struct err *err) MUST_CHECK;

/* For a token that was revoked or expired: whom it belonged to, so that what it began can be ended in its name. */
int caller_find_ended(struct engine *e, const struct caller *c, struct principal *ret,
	struct err *err) MUST_CHECK;

/* Is it over at this time? expires_ms 0 = never. Its last moment is the one before. */
bool token_over(uint64_t expires_ms, uint64_t now_ms);

/*
 * The tenant that a new object belongs to: an administrator names one ("" = "default"), a token has its
 * own and may name no other.
 */
int caller_tenant(const struct principal *p, struct view asked, char ret[TENANT_BYTES],
	struct err *err) MUST_CHECK;

/*
 * May the caller see an object of this tenant and template? A token for one template sees what is of that
 * template only. If not, there is no such object.
 */
bool caller_sees(const struct principal *p, const char *tenant, const char *template);
