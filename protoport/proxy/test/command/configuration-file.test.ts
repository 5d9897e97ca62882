import { setImmediate } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { ConfigurationFile } from "../../src/command/configuration-file.ts";
import { type ProxySettings, toProxySettings } from "../../src/command/proxy-settings.ts";
import { readProxyConfiguration } from "../../src/settings/index.ts";

const upstreams = "upstreams: [{ addresses: [http://127.0.0.1:1], descriptors: reflection }]\n";

function read(text: string): Promise<ProxySettings> {
  return toProxySettings(readProxyConfiguration({ name: "proxy.yaml", text: `${upstreams}${text}\n` }));
}

/** Reloads a file whose content has changed. Returns whether the new settings are used, and the problem. */
async function reload(before: string, after: string): Promise<{ isUsed: boolean; problem: string | undefined }> {
  const settings = await read(before);
  const file = new ConfigurationFile("proxy.yaml", () => read(after));
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
  const { isUsed, problem } = await reload(before, after);
  expect(isUsed).toBe(false);
  expect(problem).toContain(`${setting} needs a restart to change`);
});

const tokens = "tokens: [{ env: PROXY_TEST_TOKEN }]";

test.each(
  // oxfmt-ignore
  [
    { name: "authentication", setting: "authentication", before: `authentication: { ${tokens} }`, after: "" },
    { name: "authentication.scopes", setting: "authentication.scopes",
      before: `authentication: { ${tokens}, scopes: { shop.v1.*: read } }`, after: `authentication: { ${tokens} }` },
    { name: "an entry in authentication.scopes", setting: "authentication.scopes",
      before: `authentication: { ${tokens}, scopes: { shop.v1.*: read } }`,
      after: `authentication: { ${tokens}, scopes: {} }` },
    { name: "visibility", setting: "visibility", before: "visibility: { allow: [] }", after: "" },
    { name: "validateReflected", setting: "validateReflected", before: "validateReflected: true", after: "" },
    { name: "a rate for each address", setting: "rateLimit.perAddress",
      before: `authentication: { ${tokens} }\nrateLimit: { perAddress: 5, perPrincipal: 5 }`,
      after: `authentication: { ${tokens} }\nrateLimit: { perPrincipal: 5 }` },
    { name: "a rate for each caller", setting: "rateLimit.perPrincipal",
      before: `authentication: { ${tokens} }\nrateLimit: { perPrincipal: 5 }`, after: `authentication: { ${tokens} }` },
  ],
)("a reload without $name is refused, also a second time", async ({ setting, before, after }) => {
  vi.stubEnv("PROXY_TEST_TOKEN", "a-token-of-a-shop-2026");
  onTestFinished(() => void vi.unstubAllEnvs());
  const problem = `${setting} is missing; restart to serve without ${setting}`;
  for (const { isUsed, problem: found } of [await reload(before, after), await reload(before, after)]) {
    expect(isUsed).toBe(false);
    expect(found).toContain(problem);
  }
  expect(await reload(before, `${before}\ndocs: false`)).toEqual({ isUsed: true, problem: undefined });
});

test("a reload of unchanged settings that need a restart succeeds", async () => {
  const text = "admin: { port: 9001 }\ntrustedProxies: [10.0.0.0/8]\nheaderBytes: 5000";
  expect(await reload(text, `${text}\ndocs: false`)).toEqual({ isUsed: true, problem: undefined });
});

test("a second reload waits until the first uses its settings", async () => {
  const settings = await read("");
  const texts = ["docs: false", "docs: true"];
  const file = new ConfigurationFile("proxy.yaml", () => read(texts.shift() ?? ""));
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
  expect(events).toEqual([
    "start with docs: false",
    "end with docs: false",
    "start with docs: true",
    "end with docs: true",
  ]);
});

test("lastSuccessMs is the time of the last successful reload", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: 1_000 });
  onTestFinished(() => void vi.useRealTimers());
  const settings = await read("");
  const texts = ["unknown: 1", "", "headerBytes: 5000", ""];
  const file = new ConfigurationFile("proxy.yaml", () => read(texts.shift() ?? ""));
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
