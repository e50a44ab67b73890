/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a JSON body becomes the struct of its table (body.def), and how maps and lists of it become the blobs of
 * messages. A body is refused with one sentence that names the field.
 */
#pragma once

#include "body_gen.h"
#include "lib/base/buf.h"
#include "proto_gen.h"

/*
 * Reads an object into a new zeroed struct body_<name> (free it); views in it borrow from `json`, from which the
 * fields with rules of their own are taken out. 0, or -ERROR_BAD_REQUEST, -ERROR_NOT_BUILT, -ERROR_INTERNAL.
 */
int body_read(enum body_name name, json_t *json, void **ret, struct err *err) MUST_CHECK;

/* Strings as the wire carries them, each with NUL behind it; maps as key, value or, with '=', as one string. */
void body_map(const struct field_json *map, bool joined, struct buf *ret);
void body_list(const struct field_json *list, struct buf *ret);

/* What is absent is 0: the default of the host. */
void body_limits(const struct body_limits *in, struct limits *ret);
