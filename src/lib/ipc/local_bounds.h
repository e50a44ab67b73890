/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many local callers the api may have told its engine of at the same time. It stops there by itself, and the engine
 * has room for no more. One number for both, so it stands with neither.
 */
#pragma once

enum {
	LOCAL_BOUND = 1024
}; /* 512 connections, and those that left while something of theirs still ends */
