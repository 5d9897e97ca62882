import { expect, test } from "vitest";
import { envelope, GreenhouseService, startGreenhouse, startProxy } from "@protoport/testing/proxy";
import type { ForwardRules } from "../../../../src/create-proxy.ts";
import { compileForwardRules, noAddedFields } from "../../../../src/forward/forward-rules.ts";
import { type Field, openHttp2 } from "@protoport/testing/http";
import { collectGarbage, retainedBytes } from "../../../../../testing/src/http/retained-bytes.ts";

// A connection uses one list object for all equal header sections, so a list's forwarded fields can be cached.

const names = ["x-set", "x-color", "x-forwarded-for", "authorization"];

/** Sends one call per header on one connection, and returns the fields that the upstream gets. */
async function forward(headers: readonly (readonly Field[])[], rules: ForwardRules): Promise<unknown[]> {
  const received: unknown[] = [];
  await using upstream = await startGreenhouse({
    getReading: (_, { requestHeader, timeoutMs }) => {
      // The proxy offers no compression, because it would have to decompress the responses.
      expect(requestHeader.get("grpc-accept-encoding")).toBeNull();
      received.push([...names.map((name) => requestHeader.get(name)), timeoutMs() !== undefined]);
      return {};
    },
  });
  const url = `http://127.0.0.1:${upstream.address.port}`;
  await using proxy = await startProxy(url, [GreenhouseService.file], { upstreamOptions: { requestHeader: rules } });
  using http2 = await openHttp2(proxy.address);
  for (const fields of headers) {
    const header = [["content-type", "application/grpc"], ["te", "trailers"], ...fields] as const;
    const path = "/greenhouse.v1.GreenhouseService/GetReading";
    await http2.exchange({ httpMethod: "POST", path, header, body: envelope(new Uint8Array(0)) });
  }
  return received;
}

const red: readonly Field[] = Object.entries({ "x-color": "red", authorization: "Bearer a" });
const blue: readonly Field[] = Object.entries({ "x-color": "blue", "grpc-timeout": "1H" });
const headers = [red, red, red, blue, red, blue, blue, blue];

test("calls with equal headers are forwarded with their own deadlines", async () => {
  expect(await forward(headers, {})).toEqual(
    headers.map((header) =>
      header === red ? [null, "red", "127.0.0.1", "Bearer a", false] : [null, "blue", "127.0.0.1", null, true],
    ),
  );
});

test("the headers and credentials of a closed connection are released", async () => {
  const rules = compileForwardRules("request");
  const begin = (): WeakRef<readonly string[]> => {
    const header = ["authorization", "Bearer a"];
    expect(rules.select(header, noAddedFields)).toBe(rules.select(header, noAddedFields));
    return new WeakRef(header);
  };
  const header = begin();
  // A new WeakRef keeps its target until the turn ends.
  await new Promise(setImmediate);
  collectGarbage();
  expect(header.deref()).toBeUndefined();
  expect(rules.select(["x-color", "red"], noAddedFields).fields).toEqual(["x-color", "red"]);
});

test("at most a thousand field names are cached", async () => {
  const rules = compileForwardRules("request");
  const before = await retainedBytes();
  // The names are long, so that other changes in memory use are small in comparison.
  for (let at = 0; at < 2_000; at += 1) rules.select([`${at}${"x".repeat(40_000)}`, ""], noAddedFields);
  const cached = ((await retainedBytes()) - before) / 40_000;
  expect(cached).toBeGreaterThan(800);
  expect(cached).toBeLessThan(1_500);
  expect(rules.select(["x-a", "1"], noAddedFields).fields).toEqual(["x-a", "1"]);
});
