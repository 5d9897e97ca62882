import { expect, test } from "vitest";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { ForwardRules } from "../../src/create-proxy.ts";
import { compileForwardRules, nothing } from "../../src/forward/forward-rules.ts";
import type { Field } from "../../../testing/src/carriers/exchange.ts";
import { collectGarbage, heldBytes } from "../../../testing/src/carriers/held-bytes.ts";
import { openHttp2 } from "../../../testing/src/carriers/http2-connection.ts";
import { startGreenhouse } from "../../../testing/src/gateway/greenhouse.ts";
import { requestFrom, startProxy } from "../../../testing/src/gateway/proxy.ts";
import { envelope } from "../../../testing/src/gateway/scripted-http2-server.ts";

// A connection has one list of fields for all heads that are the same, so what is passed on of it is remembered.

const names = ["x-set", "x-color", "x-forwarded-for", "authorization"];

/** What the upstream gets of these fields, call by call on one connection. */
async function pass(heads: readonly (readonly Field[])[], rules: ForwardRules): Promise<unknown[]> {
  const got: unknown[] = [];
  await using upstream = await startGreenhouse({
    getReading: (_, { requestHeader, timeoutMs }) => {
      // Compression would be undone by the proxy.
      expect(requestHeader.get("grpc-accept-encoding")).toBeNull();
      got.push([...names.map((name) => requestHeader.get(name)), timeoutMs() !== undefined]);
      return {};
    },
  });
  const url = `http://127.0.0.1:${upstream.address.port}`;
  await using proxy = await startProxy(url, [GreenhouseService.file], { upstreamOptions: { metadata: rules } });
  using http2 = await openHttp2(proxy.address);
  for (const head of heads) {
    const header = [["content-type", "application/grpc"], ["te", "trailers"], ...head] as const;
    const path = "/greenhouse.v1.GreenhouseService/GetReading";
    await http2.exchange({ httpMethod: "POST", path, header, body: envelope(new Uint8Array(0)) });
  }
  return got;
}

const red: readonly Field[] = [
  ["x-color", "red"],
  ["authorization", "Bearer a"],
];
const blue: readonly Field[] = [
  ["x-color", "blue"],
  ["grpc-timeout", "1H"],
];
const heads = [red, red, red, blue, red, blue, blue, blue];

test("heads that are the same are passed on as the first of them, each with its own deadline", async () => {
  expect(await pass(heads, {})).toEqual(
    heads.map((head) =>
      head === red ? [null, "red", "127.0.0.1", "Bearer a", false] : [null, "blue", "127.0.0.1", null, true],
    ),
  );
});

test("what is set is of each call, although heads are the same", async () => {
  let calls = 0;
  const set = (): Record<string, string> => ({ "x-set": String((calls += 1)) });
  const got = await pass(heads, { set, deny: ["x-color", "x-forwarded-for"] });
  expect(got).toEqual(
    heads.map((head, at) => [String(at + 1), null, null, ...(head === red ? ["Bearer a", false] : [null, true])]),
  );
});

test("nothing is kept of a head, and the credentials in it, once its connection is closed", async () => {
  const rules = compileForwardRules("request");
  const begin = (): WeakRef<readonly string[]> => {
    const head = ["authorization", "Bearer a"];
    expect(rules.of(head, nothing)).toBe(rules.of(head, nothing));
    return new WeakRef(head);
  };
  const head = begin();
  // What a WeakRef was made of in this turn stays until its end.
  await new Promise(setImmediate);
  collectGarbage();
  expect(head.deref()).toBeUndefined();
  expect(rules.of(["x-color", "red"], nothing).fields).toEqual(["x-color", "red"]);
});

test("the names of a thousand fields are kept, and no more", async () => {
  const rules = compileForwardRules("request");
  const before = await heldBytes();
  // So long that what else the process takes or gives back meanwhile is small beside them.
  for (let at = 0; at < 2_000; at += 1) rules.of([`${at}${"x".repeat(40_000)}`, ""], nothing);
  const kept = ((await heldBytes()) - before) / 40_000;
  expect(kept).toBeGreaterThan(800);
  expect(kept).toBeLessThan(1_500);
  expect(rules.of(["x-a", "1"], nothing).fields).toEqual(["x-a", "1"]);
});

test("what names a caller is kept for a thousand addresses", () => {
  const rules = compileForwardRules("request");
  const of = (at: number): unknown => rules.added(requestFrom(`192.0.${at >> 8}.${at & 255}`));
  const [first, ...others] = Array.from({ length: 1_000 }, (_, at) => of(at));
  expect(others.includes(first)).toBe(false);
  expect(of(0)).toBe(first);
  const next = of(1_000);
  expect(of(1_000)).toBe(next);
  expect(of(0)).not.toBe(first);
});

test("rules pass on what is theirs of a list that others have passed on", () => {
  const head = ["x-color", "red", "x-size", "1"];
  const passed = [{ deny: ["x-size"] }, { deny: ["x-color"] }].map((rules) =>
    compileForwardRules("request", rules).of(head, nothing),
  );
  expect(passed.map(({ fields }) => fields)).toEqual([
    ["x-color", "red"],
    ["x-size", "1"],
  ]);
});
