/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts and URLs of rules, as people write them: a wildcard in front, letters of any script, which become A-labels here, once, by IDNA 2008; on
 * the wire nothing is ever mapped. Where a value could be meant in two ways it is refused with what to write.
 */
#pragma once

#include "config/egress_rule.h"

/* "docs.example", "*.docs.example", "**.docs.example", or an address. false: told. Sets host, labels, literal, address of the rule. */
bool host_pattern_read(struct builder *b, struct place at, struct view text, struct rule_source *r);

/* https://HOST[:PORT]/PATTERN. false: told. Sets host, port, tls and path too. */
bool url_read(struct builder *b, const struct node *n, struct rule_source *r);
