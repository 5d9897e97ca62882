import { expect, test } from "vitest";
import { readProxyConfiguration } from "../../src/settings/index.ts";

const read = (text: string, flags: Parameters<typeof readProxyConfiguration>[1] = {}) =>
  readProxyConfiguration({ name: "proxy.yaml", text }, flags);

const upstream = "upstreams:\n- addresses: [http://127.0.0.1:1]\n  descriptors: reflection\n";

test.each([
  { timeout: "0.001s", ms: 1 },
  { timeout: "1.123456789s", ms: 1_123 },
  { timeout: "86400s", ms: 86_400_000 },
  { timeout: "0.000999s", ms: undefined },
  { timeout: "86400.001s", ms: undefined },
  { timeout: "1.s", ms: undefined },
])("the duration $timeout is read as $ms ms", ({ timeout, ms }) => {
  const text = `${upstream}methodConfig: [{ name: [{}], timeout: ${timeout} }]`;
  if (ms === undefined) expect(() => read(text)).toThrow("must be a duration between 0.001s and 86400s");
  else expect(read(text).settings.methodConfig[0]?.timeout).toBe(ms);
});

test("problemAt does not name the upstream's flag for a missing setting", () => {
  const flags = { upstream: ["unix:/a=b"], reflection: true, service: ["unix:/a=b=c.*"] };
  const { settings, problemAt } = readProxyConfiguration(undefined, flags);
  expect(settings.upstreams[0]?.services).toEqual(["c.*"]);
  expect(["timeoutMs", "services"].map((name) => problemAt(`upstreams[0].${name}`, "is wrong").message)).toEqual([
    "upstreams[0].timeoutMs is wrong",
    "--service is wrong",
  ]);
});

test("--reflect-header requires a colon", () => {
  expect(() => read(upstream, { "reflect-header": ["secret"] })).toThrow("must be a name, a colon and a value");
});
