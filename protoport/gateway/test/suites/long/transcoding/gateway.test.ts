import { createServer } from "node:http";
import { expect, test } from "vitest";
import { createHttp1Exchange, createHttp2Exchange } from "../../../../../conformance/runner/index.ts";
import type { Gateway, GatewayOptions } from "../../../../src/index.ts";
import { createTestGateway, listenOnLoopback } from "@protoport/testing";
import { byHand } from "../../../../../testing/src/transcoding/all-cases.ts";
import { echoOptions } from "../../../../../testing/src/transcoding/echo-backend.ts";
import { failures } from "../../../../../testing/src/transcoding/failures.ts";
import { fetchCases, overFetch } from "../../../../../testing/src/transcoding/over-fetch.ts";

async function listen(options: Partial<GatewayOptions> = {}): Promise<Gateway & { readonly url: URL }> {
  const gateway = createTestGateway({ ...echoOptions, ...options });
  const { port } = await gateway.listen({ host: "127.0.0.1", port: 0 });
  return Object.assign(gateway, { url: new URL(`http://127.0.0.1:${port}`) });
}

test.each([
  { name: "HTTP/1.1", createExchange: createHttp1Exchange, options: {} },
  { name: "HTTP/2", createExchange: createHttp2Exchange, options: {} },
  { name: "HTTP/2 without generated code", createExchange: createHttp2Exchange, options: { codegen: false } },
])("over $name, the gateway passes the transcoding suite", async ({ createExchange, options }) => {
  const gateway = await listen(options);
  expect(await failures(byHand, createExchange(gateway.url))).toEqual([]);
  await gateway.close();
});

// In front of a mounted gateway, middleware may compare paths, so literals are compared without decoding.
const escapedLiterals = ["letter", "version", "literal-in-variable"].map((name) => `path.equivalent.${name}: fail `);

test("a gateway mounted in node:http passes the transcoding suite, except escaped literals", async () => {
  const server = createServer(createTestGateway(echoOptions).handler);
  // Node's parser refuses methods that it does not know.
  const failed = await failures(byHand, createHttp1Exchange(new URL(await listenOnLoopback(server))));
  expect(failed).toEqual(escapedLiterals.map((start) => expect.stringContaining(start)));
  server.close();
});

test("the gateway passes the whole transcoding suite over Fetch", async () => {
  expect(fetchCases.length).toBeGreaterThan(1500);
  expect(await failures(fetchCases, overFetch(createTestGateway(echoOptions).fetch))).toEqual([]);
});
