// SPDX-License-Identifier: Apache-2.0
// The cases of test_npm.py: node sdk.mjs FOLDER URL TOKEN prints {"name", "error"} per case, a line each. FOLDER is where
// @pandastack/sdk was installed. A case that throws has failed; each has a sandbox of its own unless it says otherwise.
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const [folder, apiUrl, apiKey] = process.argv.slice(2);
const sdk = createRequire(folder + "/")("@pandastack/sdk");
const client = new sdk.Client({ apiUrl, apiKey });
const cases = [];

function case_(name, run) {
	cases.push({ name, run });
}

function box_(run) {
	return async () => {
		const box = await sdk.Sandbox.create({ ttlSeconds: 120 }, client);
		try {
			await run(box);
		} finally {
			await box.kill().catch(() => undefined);
		}
	};
}

const TEXT = "Grüße, 日本語, 😀, \u2028 and \u0085";

case_("unknown key", async () => {
	const other = new sdk.Client({ apiUrl, apiKey: "dml_" + "0".repeat(40) });
	await assert.rejects(other.sandboxes.list(), sdk.AuthError);
});
case_("no key", async () => {
	const answer = await fetch(apiUrl + "/v1/sandboxes");
	assert.equal(answer.status, 401);
	assert.equal(typeof (await answer.json()).error, "string");
});
case_("unknown sandbox", async () => {
	await assert.rejects(sdk.Sandbox.get("sb_0000000000000000", client), sdk.NotFoundError);
});
case_("impossible ttl", async () => {
	await assert.rejects(sdk.Sandbox.create({ ttlSeconds: -1 }, client), sdk.BadRequestError);
});
case_("default template", box_(async (box) => {
	assert.equal(box.status, "running");
	assert.ok(box.info.cpu >= 1 && box.info.memory_mb >= 16);
	assert.equal((await box.exec("echo yes")).stdout, "yes\n");
}));
case_("metadata, get and list", async () => {
	const box = await sdk.Sandbox.create({ metadata: { ticket: "4002", trust: "none" } }, client);
	assert.deepEqual((await sdk.Sandbox.get(box.id, client)).info.metadata, { ticket: "4002", trust: "none" });
	assert.ok((await sdk.Sandbox.list(client)).some((one) => one.id === box.id));
	await box.kill();
	await assert.rejects(sdk.Sandbox.get(box.id, client), sdk.NotFoundError);
});
case_("dispose", async () => {
	const box = await sdk.Sandbox.create({}, client);
	await box[Symbol.asyncDispose]();
	await assert.rejects(client.sandboxes.get(box.id), sdk.NotFoundError);
});
case_("exec", box_(async (box) => {
	const ran = await box.exec("echo out; echo err >&2; exit 7");
	assert.deepEqual([ran.stdout, ran.stderr, ran.exitCode], ["out\n", "err\n", 7]);
	assert.equal((await box.commands.run("true")).exit_code, 0);
	assert.equal((await box.exec(`cat <<'END'\n${TEXT}\nEND`)).stdout, TEXT + "\n");
}));
case_("exec with check", box_(async (box) => {
	await assert.rejects(box.exec("exit 3", { check: true }), (e) => e instanceof sdk.CommandError && e.exitCode === 3);
}));
case_("exec timeout", box_(async (box) => {
	await assert.rejects(box.exec("sleep 60", { timeoutSeconds: 1 }), sdk.SandboxTimeout);
	assert.equal((await box.exec("pgrep -c sleep")).stdout, "0\n");
}));
case_("stream", box_(async (box) => {
	let out = "", err = "";
	const code = await box.execStream(`echo one; sleep 0.3; cat <<'END'\n${TEXT}\nEND\necho bad >&2; exit 5`, {
		onStdout: (text) => { out += text; },
		onStderr: (text) => { err += text; },
	});
	assert.deepEqual([code, out, err], [5, `one\n${TEXT}\n`, "bad\n"]);
}));
case_("stream timeout", box_(async (box) => {
	await assert.rejects(box.execStream("sleep 60", { timeoutSeconds: 1 }), sdk.SandboxTimeout);
}));
case_("run code", box_(async (box) => {
	assert.equal((await box.runCode("print(6 * 7)", "python")).stdout, "42\n");
	assert.equal((await box.runCode("echo $((6 * 7))")).stdout, "42\n");
}));
case_("code context", box_(async (box) => {
	const context = await box.createCodeContext();
	await context.runCode("x = 41");
	const done = await context.runCode("print('said')\nx + 1");
	assert.deepEqual([done.text, done.stdout], ["42", "said\n"]);
	assert.match((await context.runCode("1 / 0")).error, /ZeroDivisionError/);
	await context.close();
}));
case_("files", box_(async (box) => {
	const said = await box.filesystem.write("/work/deep/er/a b+c.txt", TEXT);
	assert.equal(said.bytes, Buffer.byteLength(TEXT));
	assert.equal(await box.filesystem.read("/work/deep/er/a b+c.txt"), TEXT);
	await box.filesystem.write("/work/bytes", new Uint8Array([0, 255, 254, 1]));
	assert.equal((await box.exec("od -An -tx1 /work/bytes")).stdout.trim(), "00 ff fe 01");
	await box.filesystem.write("/work/empty", "");
	assert.equal(await box.filesystem.read("/work/empty"), "");
}));
case_("exists, stat and walk", box_(async (box) => {
	await box.exec("mkdir -p /work/tree/one && echo x > /work/tree/a && echo yy > /work/tree/one/b");
	assert.equal(await box.filesystem.exists("/work/tree/a"), true);
	assert.equal(await box.filesystem.exists("/work/tree/none"), false);
	await assert.rejects(box.filesystem.stat("/work/tree/none"), sdk.NotFoundError);
	await assert.rejects(box.filesystem.read("/work/tree/none"), sdk.NotFoundError);
	assert.equal((await box.filesystem.stat("/work/tree/a")).size, 2);
	assert.deepEqual((await box.filesystem.list("/work/tree")).map((one) => one.name).sort(), ["a", "one"]);
	const seen = [];
	for await (const { dir, files } of box.filesystem.walk("/work/tree"))
		seen.push([dir, files.map((one) => one.name)]);
	assert.deepEqual(seen, [["/work/tree", ["a"]], ["/work/tree/one", ["b"]]]);
}));
case_("pause and resume", box_(async (box) => {
	await box.pause();
	assert.equal((await sdk.Sandbox.get(box.id, client)).status, "paused");
	await box.resume();
	assert.equal((await box.exec("echo on")).stdout, "on\n");
}));
case_("lifecycle", box_(async (box) => {
	assert.equal((await box.lifecycle()).ttl_seconds, 120);
	assert.ok((await box.setTtl(300)).ttl_seconds >= 300);
	assert.equal((await box.setPersistent(true)).persistent, true);
}));
case_("logs", box_(async (box) => {
	await box.exec("true first");
	let text = "";
	for await (const line of box.logs())
		text += line;
	assert.match(text, /true first/);
}));
case_("logs that are followed", box_(async (box) => {
	await box.exec("true first");
	const lines = box.logs({ follow: true })[Symbol.asyncIterator]();
	assert.match((await lines.next()).value, /true first/);
	await lines.return();
}));
case_("what needs a microvm", box_(async (box) => {
	for (const ask of [() => box.snapshot(), () => box.fork(), () => box.forkTree({ count: 2 }), () => box.hibernate()])
		await assert.rejects(ask(), (e) => e instanceof sdk.ServerError && /microvm/.test(e.message));
}));
case_("what surrounds them", box_(async (box) => {
	assert.equal((await client.me()).tenant, "compat");
	assert.ok((await client.templates.list()).some((one) => one.name === "python"));
	assert.equal((await client.templates.get("ubuntu-24.04")).name, "python");
	assert.deepEqual(await client.volumes.list(), []);
	assert.deepEqual(await client.snapshots.list(), []);
	assert.deepEqual(await box.previewUrls(), {});
	await assert.rejects(client.databases.create({ name: "x" }), sdk.ServerError);
}));
case_("tokens", async () => {
	const token = await client.tokens.create("npm");
	const other = new sdk.Client({ apiUrl, apiKey: token.token });
	assert.equal((await other.me()).tenant, "compat");
	assert.ok((await client.tokens.list()).some((one) => one.prefix === token.prefix));
	await client.tokens.revoke(token.prefix);
	await assert.rejects(other.me(), sdk.AuthError);
});
case_("twenty at once", async () => {
	const said = await Promise.all(Array.from({ length: 20 }, async (_, number) => {
		const box = await sdk.Sandbox.create({}, client);
		try {
			await box.filesystem.write("/work/number", String(number));
			return (await box.exec("cat /work/number")).stdout;
		} finally {
			await box.kill();
		}
	}));
	assert.deepEqual(said, Array.from({ length: 20 }, (_, number) => String(number)));
});

for (const { name, run } of cases) {
	let error = "";
	try {
		await run();
	} catch (e) {
		error = String(e?.stack ?? e);
	}
	console.log(JSON.stringify({ name, error }));
}
process.exit(0); // a log that is followed may hold a connection
