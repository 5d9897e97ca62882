import { describe, expect, test } from "vitest";
import { formatTraceparent } from "../../../src/telemetry/index.ts";
import { readBaggage } from "../../../src/telemetry/traces/baggage.ts";
import { createSampler, type SamplerName } from "../../../src/telemetry/traces/sampler.ts";
import {
  newRandomness,
  newSpanId,
  newTraceId,
  randomnessOf,
  readTraceContext,
} from "../../../src/telemetry/traces/trace-context.ts";

const trace = "0af7651916cd43dd8448eb211c80319c";
const span = "b7ad6b7169203331";
const good = `00-${trace}-${span}-01`;

describe("a traceparent is read", () => {
  test.each([
    { name: "sampled", sent: good, flags: 1 },
    { name: "not sampled", sent: `00-${trace}-${span}-00`, flags: 0 },
    { name: "with flags of later levels", sent: `00-${trace}-${span}-03`, flags: 3 },
    { name: "of a later version", sent: `01-${trace}-${span}-01`, flags: 1 },
    { name: "of a later version with more behind it", sent: `cc-${trace}-${span}-01-what-the-future-holds`, flags: 1 },
  ])("$name", ({ sent, flags }) => {
    expect(readTraceContext(sent, null)).toEqual({ traceId: trace, spanId: span, traceFlags: flags, traceState: "" });
  });
});

describe("a traceparent is ignored", () => {
  test.each<[string, string | null]>([
    ["that was not sent", null],
    ["that is empty", ""],
    ["sent twice", `${good}, ${good}`],
    ["with more behind version 00", `${good}-00`],
    ["of version ff", `ff-${trace}-${span}-01`],
    ["without a trace", `00-${"0".repeat(32)}-${span}-01`],
    ["without a span", `00-${trace}-${"0".repeat(16)}-01`],
    ["in capitals", good.toUpperCase()],
    ["with a space before it", ` ${good}`],
    ["that is cut", good.slice(0, -1)],
    ["with other than hex", good.replace("0af7", "0ag7")],
    ["of a later version with more than a hyphen behind it", `01-${trace}-${span}-01x`],
    ["of eight kilobytes", `01-${trace}-${span}-01-${"a".repeat(8_192)}`],
    ["of eight kilobytes of hyphens", "-".repeat(8_192)],
    ["with a null character", `${good}\0`],
  ])("%s", (_name, sent) => {
    expect(readTraceContext(sent, "a=1")).toBe(undefined);
  });
});

test.each([
  { sent: "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", kept: true },
  { sent: "a=".padEnd(512, "b"), kept: true },
  { sent: "a=".padEnd(513, "b"), kept: false },
  { sent: "a=\u0007", kept: false },
  { sent: "a=ä", kept: false },
])("a tracestate is passed on as it came, or not at all: $kept", ({ sent, kept }) => {
  expect(readTraceContext(good, sent)?.traceState).toBe(kept ? sent : "");
});

test("what is written is what is read", () => {
  for (let flags = 0; flags < 256; flags++) {
    const context = { traceId: newTraceId(newRandomness()), spanId: newSpanId(), traceFlags: flags, traceState: "" };
    expect(readTraceContext(formatTraceparent(context), null)).toEqual(context);
  }
});

test("ids are random, also where the pool of random bytes is filled again", () => {
  const ids = new Set(Array.from({ length: 3_000 }, () => newTraceId(newRandomness())));
  expect(ids.size).toBe(3_000);
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{32}$/);
});

test.each([0, 1, 2 ** 51 + 1, 2 ** 52 - 1])("an id has the bits that its sampler saw: %s", (randomness) => {
  expect(randomnessOf(newTraceId(randomness))).toBe(randomness);
});

test("the bits that a sampler sees are spread over all that 52 can say", () => {
  const drawn = Array.from({ length: 3_000 }, newRandomness);
  expect(new Set(drawn).size).toBe(3_000);
  expect(drawn.every((bits) => Number.isSafeInteger(bits) && bits < 2 ** 52)).toBe(true);
  // One in 2^3000 that none of them is in a half.
  expect(drawn.some((bits) => bits >= 2 ** 51)).toBe(true);
  expect(drawn.some((bits) => bits < 2 ** 51)).toBe(true);
  expect(drawn.some((bits) => bits % 2 === 1)).toBe(true);
});

describe("baggage", () => {
  const long = `a=${"b".repeat(8_190)}`;
  test.each<[string, string | null, Record<string, string>]>([
    ["that was not sent", null, {}],
    ["with a member", "user=ada", { user: "ada" }],
    ["with properties and spaces", "user = ada ; secret ; level=2 , shelf=3", { user: "ada", shelf: "3" }],
    ["in percent-encoding", "name=Zo%C3%AB", { name: "Zoë" }],
    ["with a value that cannot be decoded", "bad=%ff,good=1", { good: "1" }],
    ["with members that are none", '=1,,a,b=1 2,c="x",ok=1', { ok: "1" }],
    ["of eight kilobytes", long, { a: "b".repeat(8_190) }],
    ["of more", `${long}b`, {}],
    ["with the name of a prototype", "__proto__=1,constructor=2", { ["__proto__"]: "1", constructor: "2" }],
  ])("%s", (_name, sent, want) => {
    expect([...readBaggage(sent)]).toEqual(Object.entries(want));
  });

  test("has at most 64 members", () => {
    const sent = Array.from({ length: 200 }, (_, at) => `k${at}=v`).join(",");
    expect(readBaggage(sent).size).toBe(64);
  });
});

describe("a sampler", () => {
  const parent = { traceId: trace, spanId: span, traceFlags: 1, traceState: "" };
  test.each<{ name: SamplerName; root: boolean; sampled: boolean; unsampled: boolean }>([
    { name: "always_on", root: true, sampled: true, unsampled: true },
    { name: "always_off", root: false, sampled: false, unsampled: false },
    { name: "parentbased_always_on", root: true, sampled: true, unsampled: false },
    { name: "parentbased_always_off", root: false, sampled: true, unsampled: false },
  ])("$name", ({ name, root, sampled, unsampled }) => {
    const sampler = createSampler(name, 1);
    expect(sampler(0, undefined)).toBe(root);
    expect(sampler(0, parent)).toBe(sampled);
    expect(sampler(0, { ...parent, traceFlags: 0 })).toBe(unsampled);
  });

  test.each([0, 0.01, 0.5, 1])("with a ratio takes its share of traces, of %s", (ratio) => {
    const sampler = createSampler("traceidratio", ratio);
    // Evenly spread instead of random: the share is exact.
    const all = Array.from({ length: 1_000 }, (_, at) => Math.floor((at * 2 ** 52) / 1_000));
    expect(all.filter((randomness) => sampler(randomness, undefined)).length).toBe(ratio * 1_000);
  });
});
