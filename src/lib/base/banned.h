/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C library calls that have a safer way here; using one is a compile error. Included
 * on the command line by the build (-include), after the system headers it needs.
 */
#pragma once

#include <arpa/inet.h>
#include <dirent.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* With _FORTIFY_SOURCE clang sees these as macros. */
#undef sprintf
#undef vsprintf

#pragma GCC poison strcpy strncpy strcat strncat stpcpy
#pragma GCC poison sprintf vsprintf gets
#pragma GCC poison strtok strtok_r
#pragma GCC poison atoi atol atoll atof strtol strtoll strtoul strtoull strtod
#pragma GCC poison system popen
#pragma GCC poison gmtime localtime ctime asctime
#pragma GCC poison inet_ntoa inet_aton inet_addr gethostbyname
#pragma GCC poison rand srand random tmpnam tempnam mktemp readdir_r
