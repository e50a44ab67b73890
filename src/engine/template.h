/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Templates as `demilune-template` left them (layout: src/template/store.h): index/<name> holds the
 * digest, a symbolic link there is an alias, <digest>.json is the record. The engine reads, never
 * writes. The index is read again whenever its directory changed.
 */
#pragma once

#include "engine/engine.h"

enum template_state { TEMPLATE_KNOWN, TEMPLATE_ASKED, TEMPLATE_MOUNTED, TEMPLATE_BROKEN };

struct template
{
	struct link link;
	char name[64];
	uint8_t digest[32];
	uint64_t size_bytes, created_ms;
	char description[257];
	struct buf aliases; /* strings, each with its NUL */
	struct buf places;  /* the same */
	struct buf env;     /* the same: "NAME=value" */
	enum template_state state;
	char fault[224]; /* when BROKEN */
	bool seen;       /* by the scan that runs */
};

/* By name or alias; -ERROR_BAD_REQUEST with what there is instead. Rereads the index if it changed. */
int template_find(
	struct engine *e, struct view name, struct template **ret, struct err *err) MUST_CHECK;

/* The own name of the template that has this name or alias, whether or not it can be used now. */
int template_named(
	struct engine *e, struct view name, char ret[static 64], struct err *err) MUST_CHECK;

/* NULL when no index names this image any more. */
struct template *template_by_digest(struct engine *e, const uint8_t digest[static 32]);

/* Reads the index; once the engine is ready, new ones are asked for at once. */
void template_scan(struct engine *e);
/* Asks the supervisor for all that are not mounted yet. */
void template_prepare_all(struct engine *e);
void template_prepare(struct engine *e, struct template *t);
void template_free(struct template *t);

/* template_read.c: the canonical record into *t. */
int template_parse(struct view record, struct template *t, struct err *err) MUST_CHECK;

int on_template_ready(
	struct engine *e, const struct msg_template_ready *m, struct err *err) MUST_CHECK;
int on_template_failed(
	struct engine *e, const struct msg_template_failed *m, struct err *err) MUST_CHECK;
int on_template_list(struct engine *e, struct reply to, const struct msg_template_list *m,
	struct err *err) MUST_CHECK;
int on_template_get(struct engine *e, struct reply to, const struct msg_template_get *m,
	struct err *err) MUST_CHECK;
