/* SPDX-License-Identifier: Apache-2.0 */
/* See secret.h. Nobody else knows what a secret looks like. */
#include "broker/secret.h"

#include "broker/coding.h"
#include "broker/limits.h"

#include "lib/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

struct secret {
	char name[64];
	uint8_t *p; /* owned: pages of its own */
	size_t n, mapped;
};

struct vault {
	struct secret secret[64];
	size_t n;
	uint8_t *scratch; /* owned, as a secret: what one looks like in a coding */
	size_t scratch_n;
};

_Static_assert(sizeof(((struct vault *)0)->secret) / sizeof(struct secret) == 64, "LIMIT_SECRETS");

/* Memory that is in no swap, no dump, no child; and, where the kernel can, mapped in this process alone. */
static uint8_t *
locked_new(size_t n, struct err *err)
{
	auto_fd int fd = (int)syscall(SYS_memfd_secret, O_CLOEXEC);
	uint8_t *p = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, (off_t)n) == 0)
		p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	else if (madvise(p, n, MADV_DONTFORK) == 0)
		return p; /* secret memory is never swapped or dumped */
	if (p == MAP_FAILED) {
		(void)err_errno(err, "memory for a secret");
		return NULL;
	}
	if (mlock(p, n) < 0 || madvise(p, n, MADV_DONTDUMP) < 0 ||
		madvise(p, n, MADV_DONTFORK) < 0) {
		(void)err_errno(err, "lock the memory of a secret");
		(void)munmap(p, n); /* nothing is in it yet */
		return NULL;
	}
	return p;
}

static void
locked_free(uint8_t *p, size_t n)
{
	if (p == NULL)
		return;
	explicit_bzero(p, n);
	must(munmap(p, n) == 0);
}

int
vault_new(struct vault **ret, struct err *err)
{
	auto_free struct vault *v = calloc(1, sizeof(*v));

	if (v == NULL)
		return err_set(err, -ENOMEM, "no memory for the vault");
	v->scratch_n = CODING_GROWTH * (size_t)LIMIT_SECRET_BYTES + 4096;
	v->scratch = locked_new(v->scratch_n, err);
	if (v->scratch == NULL)
		return err->code;
	*ret = take_ptr(v);
	return 0;
}

void
vault_free(struct vault *v)
{
	if (v == NULL)
		return;
	for (size_t i = 0; i < v->n; i++)
		locked_free(v->secret[i].p, v->secret[i].mapped);
	locked_free(v->scratch, v->scratch_n);
	free(v);
}

static bool
fits_a_header(struct view s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] < 0x20 || s.p[i] == 0x7f)
			return false;
	return true;
}

int
vault_add(struct vault *v, const char *name, int fd, struct err *err)
{
	size_t mapped = (size_t)LIMIT_SECRET_BYTES + 4096, n = 0;
	uint8_t *p;
	int r;

	if (v->n == LIMIT_SECRETS)
		return err_set(err, -E2BIG, "more than %u secrets", (unsigned)LIMIT_SECRETS);
	if (vault_find(v, view_str(name)) != NULL)
		return err_set(err, -EEXIST, "secret %s is there twice", name);
	p = locked_new(mapped, err);
	if (p == NULL)
		return err->code;
	r = fd_read_upto(fd, p, (size_t)LIMIT_SECRET_BYTES + 2, &n, err);
	if (r < 0)
		r = err_context(err, "secret %s", name);
	if (r == 0 && n > 0 && p[n - 1] == '\n')
		p[--n] = 0;
	if (r == 0 && (n < LIMIT_SECRET_MIN_BYTES || n > LIMIT_SECRET_BYTES))
		r = err_set(err, -EINVAL, "secret %s: it must have %u to %u bytes", name,
			(unsigned)LIMIT_SECRET_MIN_BYTES, (unsigned)LIMIT_SECRET_BYTES);
	if (r == 0 && !fits_a_header(view_of(p, n)))
		r = err_set(err, -EINVAL,
			"secret %s: it has control characters, which no header can hold", name);
	if (r < 0) {
		locked_free(p, mapped);
		return r;
	}
	v->secret[v->n] = (struct secret){.p = p, .n = n, .mapped = mapped};
	(void)snprintf(v->secret[v->n].name, sizeof(v->secret[v->n].name), "%s", name);
	v->n++;
	return 0;
}

size_t
vault_count(const struct vault *v)
{
	return v->n;
}

const struct secret *
vault_find(const struct vault *v, struct view name)
{
	for (size_t i = 0; i < v->n; i++)
		if (view_is(name, v->secret[i].name))
			return &v->secret[i];
	return NULL;
}

char *
secret_header(const struct secret *s, struct view header, struct view prefix)
{
	size_t n = header.n + 2 + prefix.n + s->n + 1;
	char *text = malloc(n);
	char *to = text;

	if (text == NULL)
		return NULL;
	to = mempcpy(to, header.p, header.n);
	to = mempcpy(to, ": ", 2);
	if (prefix.n != 0)
		to = mempcpy(to, prefix.p, prefix.n);
	to = mempcpy(to, s->p, s->n);
	*to = '\0';
	return text;
}

void
secret_header_free(char *header)
{
	if (header == NULL)
		return;
	explicit_bzero(header, strlen(header));
	free(header);
}

bool
vault_leaks(struct vault *v, struct view text)
{
	bool found = false;

	for (size_t i = 0; i < v->n && !found; i++) {
		struct view s = view_of(v->secret[i].p, v->secret[i].n);

		for (unsigned c = 0; c < CODINGS && !found; c++) {
			size_t n = coding_write(c, s, v->scratch);

			found = n != 0 && n <= text.n &&
				memmem(text.p, text.n, v->scratch, n) != NULL;
		}
		explicit_bzero(v->scratch, CODING_GROWTH * s.n + 8);
	}
	return found;
}
