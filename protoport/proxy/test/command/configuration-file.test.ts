import { setImmediate } from "node:timers/promises";
import { expect, onTestFinished, test, vi, afterAll } from "vitest";
import { ConfigurationFile } from "../../src/command/configuration-file.ts";
import { type ProxySettings, toProxySettings } from "../../src/command/proxy-settings.ts";
import { readProxyConfiguration } from "../../src/settings/index.ts";
import { descriptorSetOf, GreenhouseService, ProxyCommand } from "@protoport/testing/proxy";
import { createTempFolder } from "@protoport/testing/process";

const upstreamSettings = "upstreams: [{ addresses: [http://127.0.0.1:1], descriptors: reflection }]\n";
const readText = (text: string): Promise<ProxySettings> =>
  toProxySettings(readProxyConfiguration({ name: "proxy.yaml", text: `${upstreamSettings}${text}\n` }));

/** Reloads a file whose content has changed. Returns whether the new settings are used, and the problem. */
async function reloadChanged(before: string, after: string): Promise<{ isUsed: boolean; problem: string | undefined }> {
  const settings = await readText(before);
  const file = new ConfigurationFile("proxy.yaml", () => readText(after));
  let isUsed = false;
  await file.reload(
    () => settings,
    async () => void (isUsed = true),
  );
  return { isUsed, problem: file.problem };
}

test.each([
  { setting: "listen.host", before: "", after: "listen: { host: 127.0.0.2 }" },
  { setting: "listen.port", before: "listen: { port: 8001 }", after: "listen: { port: 8002 }" },
  { setting: "listen.tls", before: "", after: "listen: { tls: { cert: cert.pem, key: key.pem } }" },
  { setting: "admin", before: "admin: { port: 9001 }", after: "admin: { port: 9002 }" },
  { setting: "trustedProxies", before: "trustedProxies: [10.0.0.0/8]", after: "trustedProxies: [10.0.0.0/16]" },
  { setting: "headerBytes", before: "", after: "headerBytes: 5000" },
])("a reload that changes $setting is refused, because it needs a restart", async ({ setting, before, after }) => {
  const { isUsed, problem } = await reloadChanged(before, after);
  expect([isUsed, problem]).toEqual([false, expect.stringContaining(`${setting} needs a restart to change`)]);
});

const tokenSettings = "tokens: [{ env: PROXY_TEST_TOKEN }]";

test.each(
  // oxfmt-ignore
  [
    { name: "authentication", setting: "authentication", before: `authentication: { ${tokenSettings} }`, after: "" },
    { name: "authentication.scopes", setting: "authentication.scopes",
      before: `authentication: { ${tokenSettings}, scopes: { shop.v1.*: read } }`, after: `authentication: { ${tokenSettings} }` },
    { name: "an entry in authentication.scopes", setting: "authentication.scopes",
      before: `authentication: { ${tokenSettings}, scopes: { shop.v1.*: read } }`,
      after: `authentication: { ${tokenSettings}, scopes: {} }` },
    { name: "visibility", setting: "visibility", before: "visibility: { allow: [] }", after: "" },
    { name: "validateReflected", setting: "validateReflected", before: "validateReflected: true", after: "" },
    { name: "a rate for each address", setting: "rateLimit.perAddress",
      before: `authentication: { ${tokenSettings} }\nrateLimit: { perAddress: 5, perPrincipal: 5 }`,
      after: `authentication: { ${tokenSettings} }\nrateLimit: { perPrincipal: 5 }` },
    { name: "a rate for each caller", setting: "rateLimit.perPrincipal",
      before: `authentication: { ${tokenSettings} }\nrateLimit: { perPrincipal: 5 }`, after: `authentication: { ${tokenSettings} }` },
  ],
)("a reload without $name is refused, also a second time", async ({ setting, before, after }) => {
  vi.stubEnv("PROXY_TEST_TOKEN", "a-token-of-a-shop-2026");
  onTestFinished(() => void vi.unstubAllEnvs());
  const problem = `${setting} is missing; restart to serve without ${setting}`;
  for (const { isUsed, problem: found } of [await reloadChanged(before, after), await reloadChanged(before, after)]) {
    expect(isUsed).toBe(false);
    expect(found).toContain(problem);
  }
  expect(await reloadChanged(before, `${before}\ndocs: false`)).toEqual({ isUsed: true, problem: undefined });
});

test("a reload of unchanged settings that need a restart succeeds", async () => {
  const text = "admin: { port: 9001 }\ntrustedProxies: [10.0.0.0/8]\nheaderBytes: 5000";
  expect(await reloadChanged(text, `${text}\ndocs: false`)).toEqual({ isUsed: true, problem: undefined });
});

test("a second reload waits until the first uses its settings", async () => {
  const settings = await readText("");
  const texts = ["docs: false", "docs: true"];
  const file = new ConfigurationFile("proxy.yaml", () => readText(texts.shift() ?? ""));
  const events: string[] = [];
  const reloadSlowly = (): Promise<void> =>
    file.reload(
      () => settings,
      async ({ hasDocs }) => {
        events.push(`start with docs: ${hasDocs}`);
        await setImmediate();
        events.push(`end with docs: ${hasDocs}`);
      },
    );
  await Promise.all([reloadSlowly(), reloadSlowly()]);
  const wanted = ["start with docs: false", "end with docs: false", "start with docs: true", "end with docs: true"];
  expect(events).toEqual(wanted);
});

test("lastSuccessMs is the time of the last successful reload", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: 1_000 });
  onTestFinished(() => void vi.useRealTimers());
  const settings = await readText("");
  const texts = ["unknown: 1", "", "headerBytes: 5000", ""];
  const file = new ConfigurationFile("proxy.yaml", () => readText(texts.shift() ?? ""));
  const seen: unknown[] = [];
  for (const nowMs of [2_000, 3_000, 4_000, 5_000]) {
    vi.setSystemTime(nowMs);
    await file.reload(
      () => settings,
      async () => undefined,
    );
    seen.push([file.lastSuccessMs, file.problem === undefined]);
  }
  expect(seen).toEqual([
    [1_000, false],
    [3_000, true],
    [3_000, false],
    [5_000, true],
  ]);
});

// A configuration file that is read while it is written may lack entries.

const greenhouse = GreenhouseService.typeName;
const files = createTempFolder();
afterAll(() => files[Symbol.dispose]());
const descriptorFile = files.write("greenhouse.binpb", descriptorSetOf(GreenhouseService.file));
const introspection = { url: "https://id.example/introspect", clientId: "proxy", clientSecretFile: "secret" };

function issuer(name: string, type?: string): object {
  return { issuer: `https://${name}.example`, audiences: ["shop"], ...(type !== undefined && { type }) };
}

function upstream(port: number, services: readonly string[], requestHeader?: object): object {
  return { addresses: [`http://127.0.0.1:${port}`], descriptors: descriptorFile, services, requestHeader };
}

const notForwarded = { authentication: { jwt: [issuer("a")], forward: false } };

test("a reload that loses a scope entry or validation is refused", async () => {
  using folder = createTempFolder();
  const descriptors = folder.write("greenhouse.binpb", descriptorSetOf(GreenhouseService.file));
  const tokens = [{ file: folder.write("token", "a-token-of-a-shop-2026") }];
  const configure = (scopes: object, more: { open?: readonly string[]; validate?: boolean } = {}): string => {
    const { open = [], validate = true } = more;
    const upstreams = [{ addresses: ["http://127.0.0.1:1"], descriptors }];
    const settings = { listen: { port: 0 }, drain: { delayMs: 0, timeoutMs: 0 }, upstreams, validate };
    return folder.write("proxy.json", JSON.stringify({ ...settings, authentication: { tokens, scopes, open } }));
  };
  const all = { [`${greenhouse}.*`]: "read" };
  const entry = { [`${greenhouse}.GetReading`]: "admin" };
  await using command = new ProxyCommand(["--config", configure({ ...all, ...entry, "other.v1.*": "a" })]);
  await command.serving;
  const reload = async (): Promise<string | undefined> => {
    const from = command.lines.length;
    command.hangUp();
    return (await command.waitForLine(/^(?:cannot reload the configuration|configuration reloaded)/, from))?.input;
  };
  configure(all);
  const want = `authentication.scopes must keep ${greenhouse}.GetReading; restart to require fewer scopes`;
  expect(await reload()).toContain(want);
  configure({ ...all, ...entry }, { validate: false });
  expect(await reload()).toContain("validate is missing; restart to serve without validate");
  // Entries may be changed, merged or replaced by open RPCs. Other entries match no served RPC.
  for (const [scopes, open] of [
    [{ ...all, ...entry }, []],
    [{ [`${greenhouse}.*`]: "admin read" }, []],
    [{ [`${greenhouse}.*`]: "write" }, []],
    [{ "shop.v1.*": "a" }, [greenhouse]],
  ] as const) {
    configure(scopes, { open });
    expect(await reload()).toBe("configuration reloaded");
  }
});

test.each<[name: string, lost: string, before: object, after: object, problem: string]>(
  // oxfmt-ignore
  [
    ["the type of one of two issuers' tokens", "authentication.jwt[].type",
      { authentication: { jwt: [issuer("a", "at+jwt"), issuer("b", "at+jwt")] } },
      { authentication: { jwt: [issuer("a", "at+jwt"), issuer("b")] } },
      "is missing for https://b.example; restart to serve without authentication.jwt[].type"],
    ["the audiences of introspected tokens", "authentication.introspection.audiences",
      { authentication: { introspection: { ...introspection, audiences: ["shop"] } } },
      { authentication: { introspection } },
      "is missing for https://id.example/introspect; restart to serve without authentication.introspection.audiences"],
    ["the services of one of two upstreams", "upstreams[].services",
      { upstreams: [upstream(1, ["a.*"]), upstream(2, ["b.*"])] },
      { upstreams: [upstream(1, ["a.*"]), upstream(2, [])] },
      "is missing for http://127.0.0.1:2; restart to serve without upstreams[].services"],
    ["the withholding of credentials", "authentication.forward",
      notForwarded, { authentication: { jwt: [issuer("a")] } },
      "is missing; restart to serve without authentication.forward"],
    ["the forwarded names of one of two upstreams", "upstreams[].requestHeader.allow",
      { upstreams: [upstream(1, ["a.*"], { allow: [] }), upstream(2, ["b.*"], { allow: ["x-a"] })] },
      { upstreams: [upstream(1, ["a.*"], { allow: ["x-b"] }), upstream(2, ["b.*"], { deny: ["x-b"] })] },
      "is missing for http://127.0.0.1:2; restart to serve without upstreams[].requestHeader.allow"],
    ["the denied names of an upstream that gets no credentials", "upstreams[].requestHeader.deny",
      { ...notForwarded, upstreams: [upstream(1, [], { deny: ["x-a"] })] }, notForwarded,
      "is missing for http://127.0.0.1:1; restart to serve without upstreams[].requestHeader.deny"],
  ],
)("a reload that loses %s is refused", async (_name, lost, before, after, problem) => {
  const read = async (settings: object): Promise<ProxySettings> => {
    const text = JSON.stringify({ upstreams: [upstream(1, [])], ...settings });
    return await toProxySettings(readProxyConfiguration({ name: "proxy.json", text }));
  };
  const used: ProxySettings[] = [];
  let next: object = after;
  const file = new ConfigurationFile("proxy.json", () => read(next));
  const current = await read(before);
  const reload = (): Promise<void> =>
    file.reload(
      () => current,
      async (settings) => void used.push(settings),
    );
  await reload();
  expect([file.problem, used]).toEqual([expect.stringContaining(`${lost} ${problem}`), []]);
  next = before;
  await reload();
  expect([file.problem, used.length]).toEqual([undefined, 1]);
});
