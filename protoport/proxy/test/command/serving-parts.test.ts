import { hash } from "node:crypto";
import { afterAll, afterEach, beforeEach, expect, test, vi } from "vitest";
import { toProxySettings } from "../../src/command/proxy-settings.ts";
import { closeParts, openParts, readinessOf, type ServingParts } from "../../src/command/serving-parts.ts";
import { readProxyConfiguration } from "../../src/settings/index.ts";
import { createTempFolder } from "@protoport/testing/process";

const folder = createTempFolder();
const hashes = folder.write("hashes", `sha256:${hash("sha256", "token")} shop - -\n`);
const invalidPem = folder.write("invalid.pem", "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n");
afterAll(() => folder[Symbol.dispose]());

// The only timers are those of watched files.
beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());
const lines: string[] = [];
const output = { out: (line: string) => void lines.push(line), err: () => undefined };

async function open(text: string, previous?: ServingParts): Promise<ServingParts> {
  const settings = await toProxySettings(readProxyConfiguration({ name: "proxy.yaml", text }));
  return await openParts(settings, output, () => undefined, previous);
}

/** Returns an upstream's settings. Port 1 is never called. */
const upstreamOf = (services: string, more = ""): string =>
  `- { addresses: ["http://127.0.0.1:1"], descriptors: reflection, services: [${services}]${more} }\n`;

const areReady = ({ upstreams: all }: ServingParts): readonly boolean[] => [...all.values()].map(({ ready }) => ready);
const upstreams = `upstreams:\n${upstreamOf("a.*")}${upstreamOf("b.*")}`;
const watched = `${upstreams}authentication: { tokenHashesFile: ${hashes} }\n`;

test.each([
  ["only docs", "keeps", true, `${watched}docs: false\n`, 1],
  ["rateLimit", "replaces", false, `${watched}rateLimit: { perAddress: 7 }\n`, 1],
  ["mcp", "replaces", false, `${watched}mcp: { tools: ["*"] }\n`, 1],
  ["authentication", "replaces", false, upstreams, 0],
])("a reload that changes %s %s the access checks", async (_name, _effect, isKept, text, watches) => {
  const old = await open(watched);
  const next = await open(text, old);
  expect(next.accessChecks === old.accessChecks).toBe(isKept);
  await closeParts(old, 0, next);
  await expect.poll(() => vi.getTimerCount()).toBe(watches);
  await closeParts(next, 0);
  await expect.poll(() => vi.getTimerCount()).toBe(0);
});

test("after a reload, two upstreams with equal settings keep separate connections", async () => {
  const old = await open(upstreams);
  const next = await open(upstreams, old);
  const [first, second] = next.upstreams.values();
  const [oldFirst, oldSecond] = old.upstreams.values();
  expect(first).toBe(oldFirst);
  expect(second).toBe(oldSecond);
  expect(second).not.toBe(first);
  await closeParts(next, 0);
});

// oxfmt-ignore
test.each([
  "addresses: [dns:localhost:2]", "connections: 2", "keepaliveMs: 2", "resolveEveryMs: 2", 'healthService: ""',
  "maxConnectionAgeMs: 2", "tls: {}", "tls: { servername: b }",
])("adding or removing `%s` by reloads replaces an upstream's connections", async (setting) => {
  const [before, after] = ["addresses: [dns:localhost:1]", setting]
    .map((each) => (each.startsWith("addresses") ? each : `addresses: [dns:localhost:1], ${each}`))
    .map((settings) => `upstreams: [{ descriptors: reflection, ${settings} }]`);
  const old = await open(before ?? "");
  const next = await open(after ?? "", old);
  const last = await open(before ?? "", next);
  const upstreamsOf = [old, next, last].map(({ upstreams: all }) => [...all.values()][0]);
  expect(new Set(upstreamsOf).size).toBe(3);
  await Promise.all([old, next, last].map((each) => closeParts(each, 0)));
});

test("a reload that changes only forwarding keeps an upstream's connections", async () => {
  const old = await open(upstreams);
  const more = ", timeoutMs: 5, timeoutMaxMs: 6, retry: off, requestHeader: { deny: [a] }";
  const next = await open(`upstreams:\n${upstreamOf("a.*", more)}${upstreamOf("c.*")}responseBytes: 5000\n`, old);
  expect([...next.upstreams.values()]).toEqual([...old.upstreams.values()]);
  await closeParts(next, 0);
});

test("a reload names a shared upstream by its new position", async () => {
  const old = await open(upstreams);
  const next = await open(`upstreams:\n${upstreamOf("b.*", ", connections: 2")}${upstreamOf("a.*")}`, old);
  expect([...next.upstreams.values()][1]).toBe([...old.upstreams.values()][0]);
  expect([...next.upstreams.keys()]).toEqual(["http://127.0.0.1:1", "http://127.0.0.1:1#2"]);
  await Promise.all([closeParts(old, 0, next), closeParts(next, 0)]);
});

test("an upstream's name is unique if its address equals another upstream's name", async () => {
  const addresses = ["unix:/a", "unix:/a", "unix:/a#2", "unix:/a"];
  const items = addresses.map(
    (each, at) => `- { addresses: ["${each}"], descriptors: reflection, services: [s${at}] }`,
  );
  const parts = await open(["upstreams:", ...items].join("\n"));
  expect([...parts.upstreams.keys()]).toEqual(["unix:/a", "unix:/a#2", "unix:/a#2#2", "unix:/a#3"]);
  await closeParts(parts, 0);
});

test("closing replaced parts drains the upstreams that are no longer used", async () => {
  const old = await open(upstreams);
  const next = await open(`upstreams:\n${upstreamOf("a.*")}${upstreamOf("b.*", ", connections: 2")}`, old);
  await closeParts(old, 0, next);
  expect([areReady(old), areReady(next)]).toEqual([
    [true, false],
    [true, true],
  ]);
  await closeParts(next, 0);
  expect(areReady(next)).toEqual([false, false]);
});

test("a failed reload closes only the access checks that it opened", async () => {
  const tls = `- { addresses: ["https://127.0.0.1:1"], descriptors: reflection, services: [b.*], tls: { cert: ${invalidPem}, key: ${invalidPem} } }\n`;
  const text = watched.replace(upstreamOf("b.*"), tls);
  await expect(open(text)).rejects.toThrow("upstreams[1].tls.cert is not valid");
  await expect.poll(() => vi.getTimerCount()).toBe(0);
  const old = await open(watched);
  await expect(open(text, old)).rejects.toThrow("upstreams[1].tls.cert is not valid");
  await expect.poll(() => vi.getTimerCount()).toBe(1);
  await closeParts(old, 0);
  await expect.poll(() => vi.getTimerCount()).toBe(0);
});

test("access checks that a reload keeps read their files again", async () => {
  const old = await open(watched);
  folder.write("hashes", `sha256:${hash("sha256", "other")} shop - -\n`);
  lines.length = 0;
  const next = await open(`${watched}docs: false\n`, old);
  await vi.waitFor(() => expect(lines.join()).toContain("token hashes"));
  await closeParts(next, 0);
});

const neverRead = { problem: "unreadable", lastSuccessMs: undefined };
const readBefore = { problem: "unreadable", lastSuccessMs: 1 };
const read = { problem: undefined, lastSuccessMs: 1 };

test.each<[name: string, reloads: readonly object[], requireAll: boolean, problem: string | undefined]>([
  ["has descriptors", [read, read], true, undefined],
  ["has previous descriptors", [read, readBefore], true, undefined],
  ["never had descriptors", [read, neverRead], true, "unreadable"],
  ["is optional and never had descriptors", [read, neverRead], false, "unreadable"],
])("when the second %s, readiness lists each of two upstreams", async (_name, reloads, requireAll, problem) => {
  const parts = await open(`${upstreams}requireAll: ${requireAll}\n`);
  const proxy = Object.assign(Object.create(null), { descriptorReloads: reloads });
  const isOptional = !requireAll;
  expect(readinessOf(parts, proxy)).toEqual({
    descriptors: { problem: undefined },
    upstream: { problem: undefined },
    "upstream http://127.0.0.1:1": { isOptional, problem: undefined },
    "upstream http://127.0.0.1:1#2": { isOptional, problem },
  });
  await closeParts(parts, 0);
  expect(readinessOf(parts, undefined)).toMatchObject({
    descriptors: { problem: "the descriptors are not loaded yet" },
    upstream: { problem: "no upstream is reachable" },
    "upstream http://127.0.0.1:1": { isOptional, problem: "unreachable" },
  });
});

test("readiness does not list an upstream that is the only one", async () => {
  const parts = await open(`upstreams:\n${upstreamOf("a.*")}`);
  expect(Object.keys(readinessOf(parts, undefined))).toEqual(["descriptors", "upstream"]);
  await closeParts(parts, 0);
});
