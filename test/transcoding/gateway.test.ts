import { createServer } from "node:http";
import { expect, test } from "vitest";
import {
  type Case,
  createHttp1,
  createHttp2,
  type Exchange,
  type Result,
  run,
} from "../../conformance/runner/index.ts";
import { createGateway, type Gateway } from "../../src/gateway/index.ts";
import { waitLimitMs } from "../support/deadline.ts";
import { isSayable } from "../support/carriers/fetch.ts";
import { isSince } from "../support/peer-version.ts";
import { listenOnLoopback } from "../support/carriers/listen-on-loopback.ts";
import { allCases } from "./all-cases.ts";
import { echoOptions } from "./echo-backend.ts";
import { overFetch } from "./over-fetch.ts";

// The regular ones differ in values alone, which no carrier sees: once is enough.
const byHand = allCases.filter(({ group }) => !group.startsWith("values-"));

// What this gateway does otherwise, as the standard allows: it refuses what is there twice, reads streams of its own
// content types alone, and takes the numbers of enums in URLs.
const byAlternative = new Set([
  "body.star.path.null",
  "body.twice",
  "body.twice.names",
  "body.twice.map",
  "stream.collect.json-lines",
  "stream.collect.array",
  "stream.collect.one",
  "stream.relay.json-lines",
  "path.enum.number",
  "path.enum.unknown-number",
  "path.enum.negative-number",
  "query.enum.number",
  "query.enum.unknown-number",
  "query.enum.negative-number",
]);

// Older versions of protobuf-es lose a key `__proto__` when they write a map.
const knownFailing = isSince("@bufbuild/protobuf", "2.16") ? [] : ["body.map.proto-key"];

/** Returns what is wrong with each case that is not kept, or kept by an alternative where it was not, a line each. */
async function failures(some: readonly Case[], exchange: Exchange): Promise<readonly string[]> {
  const results: Result[] = [];
  const options = { exchange, timeoutMs: waitLimitMs, without: [], knownFailing };
  for await (const result of run(some, options)) results.push(result);
  expect(results).toHaveLength(some.length);
  return results.flatMap(({ case: { id }, outcome, problems }) => {
    const isKept = outcome === "pass" || outcome === "known" || (outcome === "alternative" && byAlternative.has(id));
    return isKept ? [] : [`${id}: ${outcome} ${problems.join("; ")}`];
  });
}

async function listen(): Promise<Gateway & { readonly url: URL }> {
  const gateway = createGateway(echoOptions);
  const { port } = await gateway.listen({ host: "127.0.0.1", port: 0 });
  return Object.assign(gateway, { url: new URL(`http://127.0.0.1:${port}`) });
}

test("the gateway keeps the transcoding suite over HTTP/1.1", async () => {
  const gateway = await listen();
  expect(await failures(byHand, createHttp1(gateway.url))).toEqual([]);
  await gateway.close();
});

test("the gateway keeps the transcoding suite over HTTP/2", async () => {
  const gateway = await listen();
  expect(await failures(byHand, createHttp2(gateway.url))).toEqual([]);
  await gateway.close();
});

test("the gateway keeps the transcoding suite mounted in a server of node:http", async () => {
  const server = createServer(createGateway(echoOptions).handler);
  // Node's parser refuses methods that it does not know.
  const url = new URL(await listenOnLoopback(server));
  expect(await failures(byHand, createHttp1(url))).toEqual([]);
  server.close();
});

test("the gateway keeps the whole transcoding suite over Fetch", async () => {
  const sayable = allCases.filter(({ request: { method, target, json, text, base64 } }) => {
    const body = json ?? text ?? base64;
    return isSayable({
      httpMethod: method,
      path: target,
      header: [],
      ...(body === undefined ? {} : { body: Buffer.from(body) }),
    });
  });
  expect(sayable.length).toBeGreaterThan(1500);
  expect(await failures(sayable, overFetch(createGateway(echoOptions).fetch))).toEqual([]);
});
