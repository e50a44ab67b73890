/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns a list into BPF: architecture, x32 bit, then a binary search over runs of numbers
 * with the same verdict. A verdict is one RET, or the rows of one call in order.
 *
 * Every path ends in RET and nothing but the number is looked at before a run is found, so
 * the kernel can see which calls are always allowed and answer them from its bitmap
 * without running the program (Linux 5.11).
 */
#include "lib/jail/gen/def.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>

#define X32_BIT 0x40000000u

enum { NOT_PLAIN = -1 };

struct run {
	uint32_t first;  /* the run goes up to the next one */
	uint32_t action; /* when nr is NOT_PLAIN: unused */
	int nr;          /* the call whose rows are asked, or NOT_PLAIN for a plain action */
};

struct emit {
	const struct def *d;
	struct sock_filter *out;
	size_t n, max;
	struct run runs[DEF_NR_END + 1];
};

static void
put(struct emit *e, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
	if (e->n < e->max)
		e->out[e->n] = (struct sock_filter){.code = code, .jt = jt, .jf = jf, .k = k};
	e->n++; /* past max: def_compile refuses */
}

static void
put_load(struct emit *e, size_t offset)
{
	put(e, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void
put_return(struct emit *e, uint32_t action)
{
	put(e, BPF_RET | BPF_K, action, 0, 0);
}

static size_t
cond_size(const struct def_cond *c)
{
	return c->mask == UINT32_MAX ? 2 : 3;
}

/* One row: every term that fails jumps behind the row's RET. */
static void
put_row(struct emit *e, const struct def_row *row)
{
	size_t left = 1; /* instructions from behind the current term to behind the RET */

	for (size_t i = 0; i < row->conds_n; i++)
		left += cond_size(&row->conds[i]);
	for (size_t i = 0; i < row->conds_n; i++) {
		const struct def_cond *c = &row->conds[i];
		uint8_t miss;

		left -= cond_size(c);
		miss = (uint8_t)left; /* at most 3 * DEF_CONDS_MAX + 1 */
		/* The low half; both architectures are little-endian. */
		put_load(e, offsetof(struct seccomp_data, args) + 8 * c->arg);
		if (c->mask != UINT32_MAX)
			put(e, BPF_ALU | BPF_AND | BPF_K, c->mask, 0, 0);
		put(e, BPF_JMP | BPF_JEQ | BPF_K, c->value, c->differs ? miss : 0,
			c->differs ? 0 : miss);
	}
	put_return(e, row->action);
}

static void
put_run(struct emit *e, const struct run *r)
{
	const struct def *d = e->d;

	if (r->nr == NOT_PLAIN) {
		put_return(e, r->action);
		return;
	}
	for (size_t i = 0; i < d->rows_n; i++)
		if (d->rows[i].nr == r->nr) {
			put_row(e, &d->rows[i]);
			if (d->rows[i].conds_n == 0)
				return;
		}
	put_return(e, d->unlisted);
}

/* Binary search over runs[from, to); the depth is the logarithm of DEF_NR_END. */
static void
put_search(struct emit *e, size_t from, size_t to)
{
	size_t middle = from + (to - from) / 2, jump;

	if (to - from == 1) {
		put_run(e, &e->runs[from]);
		return;
	}
	/* A jump over more than 255 instructions needs JA, so all take that form. */
	put(e, BPF_JMP | BPF_JGE | BPF_K, e->runs[middle].first, 0, 1);
	jump = e->n;
	put(e, BPF_JMP | BPF_JA, 0, 0, 0);
	put_search(e, from, middle);
	if (jump < e->max)
		e->out[jump].k = (uint32_t)(e->n - jump - 1);
	put_search(e, middle, to);
}

static struct run
run_of(const struct def *d, int nr)
{
	for (size_t i = 0; i < d->rows_n; i++)
		if (d->rows[i].nr == nr)
			return d->rows[i].conds_n == 0
				       ? (struct run){.action = d->rows[i].action, .nr = NOT_PLAIN}
				       : (struct run){.nr = nr};
	return (struct run){.action = d->unlisted, .nr = NOT_PLAIN};
}

static size_t
find_runs(struct emit *e)
{
	size_t n = 0;

	for (int nr = 0; nr <= DEF_NR_END; nr++) {
		struct run r = run_of(e->d, nr);

		if (n != 0 && r.nr == e->runs[n - 1].nr && r.action == e->runs[n - 1].action)
			continue;
		r.first = (uint32_t)nr;
		e->runs[n++] = r;
	}
	return n;
}

int
def_compile(
	const struct def *d, struct sock_filter *out, size_t max, size_t *ret_n, struct err *err)
{
	struct emit e = {.d = d, .out = out, .max = max};
	size_t runs = find_runs(&e);

	put_load(&e, offsetof(struct seccomp_data, arch));
	put(&e, BPF_JMP | BPF_JEQ | BPF_K, d->arch, 1, 0);
	put_return(&e, d->foreign);
	put_load(&e, offsetof(struct seccomp_data, nr));
	if (d->arch == SCMP_ARCH_X86_64) {
		put(&e, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
		put_return(&e, d->foreign);
	}
	put_search(&e, 0, runs);
	if (d->has_mark)
		put_return(&e, d->mark); /* not reached: jail_prove reads it */
	if (e.n > max || e.n > DEF_INSNS_MAX)
		return err_set(err, -E2BIG,
			"the filter has %zu instructions, more than the kernel takes", e.n);
	*ret_n = e.n;
	return 0;
}
