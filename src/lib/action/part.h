/* SPDX-License-Identifier: Apache-2.0 */
/* What operation.c is made of: the parts of a document that have a reader of their own. Nobody else includes this. */
#pragma once

#include "lib/canon/form.h"
#include "lib/action/operation.h"

/* Ascending, each once, 100..599. */
int codes_read(const struct form_value *v, const char *what, struct codes *ret,
	struct err *err) MUST_CHECK;

int provider_read(struct view raw, struct provider *ret, struct err *err) MUST_CHECK;

/* `request` and `verify` of op->document; op has its parameters, effect and providers' room. */
int request_read(struct view raw, struct operation *op, struct err *err) MUST_CHECK;
int verify_read(struct view raw, struct operation *op, struct err *err) MUST_CHECK;

/* path, query of request, verify and lookup. */
int target_check(const struct operation *op, const struct form_value *path,
	const struct form_value *query, unsigned hosts, struct err *err) MUST_CHECK;

/* "order.tenant": names of form_name_ok with dots between, no "__" anywhere, at most 63 bytes. */
bool fact_name_ok(struct view v);

/* verify.require; condition.c. */
int conditions_check(const struct operation *op, struct err *err) MUST_CHECK;
