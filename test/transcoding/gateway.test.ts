import { createServer } from "node:http";
import { expect, test } from "vitest";
import {
  type Case,
  createHttp1,
  createHttp2,
  type Exchange,
  readCases,
  type Result,
  run,
  writeReport,
} from "../../conformance/runner/index.ts";
import { createGateway, type Gateway } from "../../src/gateway/index.ts";
import { waitLimitMs } from "../support/deadline.ts";
import { isSayable } from "../support/carriers/fetch.ts";
import { listenOnLoopback } from "../support/carriers/listen-on-loopback.ts";
import { echoOptions } from "./echo-backend.ts";
import { overFetch } from "./over-fetch.ts";

const cases = readCases();
// The regular ones differ in values alone, which no carrier sees: once is enough.
const byHand = cases.filter(({ group }) => !group.startsWith("values-"));

async function failures(some: readonly Case[], exchange: Exchange): Promise<string> {
  const results: Result[] = [];
  const options = { exchange, timeoutMs: waitLimitMs, without: [], knownFailing: [] };
  for await (const result of run(some, options)) results.push(result);
  expect(results).toHaveLength(some.length);
  const failed = results.filter(({ outcome }) => outcome === "fail");
  return failed.length === 0 ? "" : writeReport(failed, "text");
}

async function listen(): Promise<Gateway & { readonly url: URL }> {
  const gateway = createGateway(echoOptions);
  const { port } = await gateway.listen({ host: "127.0.0.1", port: 0 });
  return Object.assign(gateway, { url: new URL(`http://127.0.0.1:${port}`) });
}

test("the gateway keeps the transcoding suite over HTTP/1.1", async () => {
  const gateway = await listen();
  expect(await failures(byHand, createHttp1(gateway.url))).toBe("");
  await gateway.close();
});

test("the gateway keeps the transcoding suite over HTTP/2", async () => {
  const gateway = await listen();
  expect(await failures(byHand, createHttp2(gateway.url))).toBe("");
  await gateway.close();
});

test("the gateway keeps the transcoding suite mounted in a server of node:http", async () => {
  const server = createServer(createGateway(echoOptions).handler);
  // Node's parser refuses methods that it does not know.
  const url = new URL(await listenOnLoopback(server));
  expect(await failures(byHand, createHttp1(url))).toBe("");
  server.close();
});

test("the gateway keeps the whole transcoding suite over Fetch", async () => {
  const sayable = cases.filter(({ request: { method, target, json, text, base64 } }) => {
    const body = json ?? text ?? base64;
    return isSayable({
      httpMethod: method,
      path: target,
      header: [],
      ...(body === undefined ? {} : { body: Buffer.from(body) }),
    });
  });
  expect(sayable.length).toBeGreaterThan(1500);
  expect(await failures(sayable, overFetch(createGateway(echoOptions).fetch))).toBe("");
});
