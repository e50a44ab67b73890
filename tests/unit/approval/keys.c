/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of others; see keys.h. */
#include "keys.h"

#include "lib/approval/sshsig.h"
#include "lib/approval/sshwire.h"
#include "lib/base/base64.h"
#include "lib/base/fd.h"

#include <fcntl.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

void
keys_dir_make(char ret[static KEYS_PATH])
{
	(void)snprintf(ret, KEYS_PATH, "/tmp/approval-XXXXXX");
	must(mkdtemp(ret) != NULL);
}

void
keys_dir_remove(const char *dir)
{
	const char *const argv[] = {"rm", "-r", dir, NULL};
	auto_buf struct buf out = {.max = 4096};

	must(program_run(argv, NULL, &out) == 0);
}

void
file_write(const char *path, struct view v)
{
	int fd auto_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct err err;

	must(fd >= 0 && fd_write_all(fd, v.p, v.n, &err) == 0);
}

void
file_read(const char *path, struct buf *out)
{
	int fd auto_fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t room[8192];
	struct err err;
	size_t n;

	must(fd >= 0 && fd_read_upto(fd, room, sizeof(room), &n, &err) == 0);
	buf_add(out, room, n);
}

int
program_run(const char *const *argv, const char *input, struct buf *out)
{
	int pipes[2], status;
	uint8_t room[4096];
	pid_t pid;
	ssize_t n;

	must(pipe2(pipes, O_CLOEXEC) == 0);
	pid = fork();
	must(pid >= 0);
	if (pid == 0) {
		int in = open(input == NULL ? "/dev/null" : input, O_RDONLY | O_CLOEXEC);

		if (dup2(in, 0) < 0 || dup2(pipes[1], 1) < 0 || dup2(pipes[1], 2) < 0)
			_exit(126);
		execvp(argv[0], (char **)(uintptr_t)argv);
		_exit(127);
	}
	(void)close(pipes[1]);
	while ((n = read(pipes[0], room, sizeof(room))) > 0)
		buf_add(out, room, (size_t)n);
	(void)close(pipes[0]);
	must(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

void
keys_path(char ret[static KEYS_PATH], const char *dir, const char *name, const char *end)
{
	must(snprintf(ret, KEYS_PATH, "%s/%s%s", dir, name, end) < KEYS_PATH);
}

static void
public_blob(const char *path, struct buf *blob)
{
	auto_buf struct buf text = {.max = 8192};
	const uint8_t *from, *to;

	file_read(path, &text);
	from = memchr(text.p, ' ', text.n);
	must(from != NULL);
	from++;
	to = memchr(from, ' ', (size_t)(text.p + text.n - from));
	must(to != NULL && base64_decode(view_of(from, (size_t)(to - from)), blob) == 0);
}

void
keys_generate(
	const char *dir, const char *name, const char *type, const char *bits, struct buf *blob)
{
	char path[KEYS_PATH], pub[KEYS_PATH];
	const char *const argv[] = {"ssh-keygen", "-q", "-N", "", "-C", "test", "-f", path, "-t",
		type, bits == NULL ? NULL : "-b", bits, NULL};
	auto_buf struct buf out = {.max = 4096};

	keys_path(path, dir, name, "");
	keys_path(pub, dir, name, ".pub");
	must(program_run(argv, NULL, &out) == 0);
	public_blob(pub, blob);
}

void
keys_sign(const char *dir, const char *name, const char *name_space, const char *hash,
	struct view message, struct buf *blob)
{
	char path[KEYS_PATH], in[KEYS_PATH], sig[KEYS_PATH], option[32];
	const char *const argv[] = {
		"ssh-keygen", "-Y", "sign", "-f", path, "-n", name_space, "-O", option, in, NULL};
	auto_buf struct buf out = {.max = 4096}, text = {.max = 16384};
	struct err err;

	keys_path(path, dir, name, "");
	keys_path(in, dir, name, ".message");
	keys_path(sig, dir, name, ".message.sig");
	(void)unlink(sig);
	(void)snprintf(option, sizeof(option), "hashalg=%s", hash);
	file_write(in, message);
	must(program_run(argv, NULL, &out) == 0);
	file_read(sig, &text);
	must(sshsig_dearmour(buf_view(&text), blob, &err) == 0);
}

bool
keys_verify(const char *dir, const char *name, const char *name_space, struct view message,
	struct view blob)
{
	char in[KEYS_PATH], sig[KEYS_PATH], signers[KEYS_PATH], pub[KEYS_PATH];
	const char *const argv[] = {"ssh-keygen", "-Y", "verify", "-f", signers, "-I", "anna", "-n",
		name_space, "-s", sig, NULL};
	auto_buf struct buf out = {.max = 4096}, line = {.max = 8192}, text = {.max = 16384};

	keys_path(in, dir, name, ".in");
	keys_path(sig, dir, name, ".sig");
	keys_path(signers, dir, name, ".signers");
	keys_path(pub, dir, name, ".pub");
	buf_add_str(&line, "anna ");
	file_read(pub, &line);
	file_write(signers, buf_view(&line));
	sshsig_armour(blob, &text);
	must(buf_check(&text) == 0);
	file_write(sig, buf_view(&text));
	file_write(in, message);
	return program_run(argv, in, &out) == 0;
}

struct fido {
	bool ecdsa;
	const char *application;
	EVP_PKEY *pkey;
};

struct fido *
fido_new(bool ecdsa, const char *application)
{
	struct fido *f = calloc(1, sizeof(*f));

	must(f != NULL);
	f->ecdsa = ecdsa;
	f->application = application;
	f->pkey = ecdsa ? EVP_EC_gen("P-256") : EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	must(f->pkey != NULL);
	return f;
}

void
fido_free(struct fido *f)
{
	EVP_PKEY_free(f->pkey);
	free(f);
}

static const char *
fido_type(const struct fido *f)
{
	return f->ecdsa ? "sk-ecdsa-sha2-nistp256@openssh.com" : "sk-ssh-ed25519@openssh.com";
}

void
fido_blob(const struct fido *f, struct buf *out)
{
	uint8_t point[128];
	size_t n = sizeof(point);

	ssh_put(out, view_str(fido_type(f)));
	if (f->ecdsa) {
		ssh_put(out, view_str("nistp256"));
		must(EVP_PKEY_get_octet_string_param(
			     f->pkey, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point), &n) == 1);
	} else {
		must(EVP_PKEY_get_raw_public_key(f->pkey, point, &n) == 1);
	}
	ssh_put(out, view_of(point, n));
	ssh_put(out, view_str(f->application));
}

static void
put_number(struct buf *out, const BIGNUM *number)
{
	uint8_t bytes[65] = {0};
	int n = BN_bn2bin(number, bytes + 1);
	bool high = (bytes[1] & 0x80) != 0;

	ssh_put(out, view_of(bytes + !high, (size_t)n + high));
}

/* The value as SSH writes it. */
static void
put_value(const struct fido *f, const uint8_t *der, size_t n, struct buf *out)
{
	auto_buf struct buf numbers = {.max = 256};
	const uint8_t *p = der;
	ECDSA_SIG *sig;

	if (!f->ecdsa) {
		ssh_put(out, view_of(der, n));
		return;
	}
	sig = d2i_ECDSA_SIG(NULL, &p, (long)n);
	must(sig != NULL);
	put_number(&numbers, ECDSA_SIG_get0_r(sig));
	put_number(&numbers, ECDSA_SIG_get0_s(sig));
	ECDSA_SIG_free(sig);
	ssh_put(out, buf_view(&numbers));
}

void
fido_sign(const struct fido *f, const char *name_space, struct view message, uint8_t flags,
	uint8_t told, uint32_t counter, struct buf *out)
{
	auto_buf struct buf asked = {.max = 1024}, made = {.max = 1024}, blob = {.max = 1024},
			    signature = {.max = 1024};
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	uint8_t digest[32], value[256];
	size_t n = sizeof(value);

	sshsig_signed(name_space, SSHSIG_SHA512, message, &asked);
	sha256_of(view_str(f->application), digest);
	buf_add(&made, digest, sizeof(digest));
	buf_add_byte(&made, flags);
	ssh_put_u32(&made, counter);
	sha256_of(buf_view(&asked), digest);
	buf_add(&made, digest, sizeof(digest));
	must(EVP_DigestSignInit_ex(
		     ctx, NULL, f->ecdsa ? "SHA256" : NULL, NULL, NULL, f->pkey, NULL) == 1);
	must(EVP_DigestSign(ctx, value, &n, made.p, made.n) == 1);
	EVP_MD_CTX_free(ctx);
	ssh_put(&signature, view_str(fido_type(f)));
	put_value(f, value, n, &signature);
	buf_add_byte(&signature, told);
	ssh_put_u32(&signature, counter);
	fido_blob(f, &blob);
	sshsig_write(buf_view(&blob), name_space, buf_view(&signature), out);
}
