/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that generate.py puts into the program: the OpenAPI document, and the program of a code context. */
#pragma once

#include <stddef.h>

extern const unsigned char openapi_json[];
extern const size_t openapi_json_bytes;
extern const unsigned char repl_driver[];
extern const size_t repl_driver_bytes;
