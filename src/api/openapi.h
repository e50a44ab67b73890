/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenAPI document that generate.py makes of route.def and body.def. */
#pragma once

#include <stddef.h>

extern const unsigned char openapi_json[];
extern const size_t openapi_json_bytes;
