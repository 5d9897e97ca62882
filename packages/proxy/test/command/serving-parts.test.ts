import { hash } from "node:crypto";
import { afterAll, afterEach, beforeEach, expect, test, vi } from "vitest";
import { toProxySettings } from "../../src/command/proxy-settings.ts";
import { closeParts, openParts, type ServingParts } from "../../src/command/serving-parts.ts";
import { readProxyConfiguration } from "../../src/settings/index.ts";
import { createTempFolder } from "../../../testing/src/process/temp-folder.ts";

// Which parts of a proxy a configuration reload shares with the previous ones, and which it closes.

const folder = createTempFolder();
const hashes = folder.write("hashes", `sha256:${hash("sha256", "token")} shop - -\n`);
const invalidPem = folder.write("invalid.pem", "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n");
afterAll(() => folder[Symbol.dispose]());

// The only timers are those of watched files.
beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

const output = { out: () => undefined, err: () => undefined };

async function open(text: string, previous?: ServingParts): Promise<ServingParts> {
  const settings = await toProxySettings(readProxyConfiguration({ name: "proxy.yaml", text }));
  return await openParts(settings, output, () => undefined, previous);
}

/** Returns an upstream's settings. Port 1 is never called. */
function upstreamOf(services: string, more = ""): string {
  return `- { addresses: ["http://127.0.0.1:1"], descriptors: reflection, services: [${services}]${more} }\n`;
}

function areReady({ upstreams: all }: ServingParts): readonly boolean[] {
  return [...all.values()].map(({ ready }) => ready);
}

const upstreams = `upstreams:\n${upstreamOf("a.*")}${upstreamOf("b.*")}`;
const watched = `${upstreams}authentication: { tokenHashesFile: ${hashes} }\n`;

test.each([
  { name: "only docs", effect: "keeps", isKept: true, text: `${watched}docs: false\n`, watches: 1 },
  {
    name: "rateLimit",
    effect: "replaces",
    isKept: false,
    text: `${watched}rateLimit: { perAddress: 7 }\n`,
    watches: 1,
  },
  { name: "mcp", effect: "replaces", isKept: false, text: `${watched}mcp: { tools: ["*"] }\n`, watches: 1 },
  { name: "authentication", effect: "replaces", isKept: false, text: upstreams, watches: 0 },
])("a reload that changes $name $effect the access checks", async ({ isKept, text, watches }) => {
  const old = await open(watched);
  const next = await open(text, old);
  expect(next.accessChecks === old.accessChecks).toBe(isKept);
  await closeParts(old, 0, next);
  expect(vi.getTimerCount()).toBe(watches);
  await closeParts(next, 0);
  expect(vi.getTimerCount()).toBe(0);
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
  expect(vi.getTimerCount()).toBe(0);
  const old = await open(watched);
  await expect(open(text, old)).rejects.toThrow("upstreams[1].tls.cert is not valid");
  expect(vi.getTimerCount()).toBe(1);
  await closeParts(old, 0);
  expect(vi.getTimerCount()).toBe(0);
});
