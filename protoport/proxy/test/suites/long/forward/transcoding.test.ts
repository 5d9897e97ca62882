import { afterAll, beforeAll, expect, test } from "vitest";
import { createHttp1Exchange, createHttp2Exchange } from "../../../../../conformance/runner/index.ts";
import { createGateway, type Gateway } from "../../../../../gateway/src/index.ts";
import { echoFiles } from "../../../../../testing/src/gateway/grpc-programs.ts";
import { startProxy, type TestProxy } from "../../../../../testing/src/gateway/proxy.ts";
import { byHand } from "../../../../../testing/src/transcoding/all-cases.ts";
import { echoOptions } from "../../../../../testing/src/transcoding/echo-backend.ts";
import { failures } from "../../../../../testing/src/transcoding/failures.ts";

let upstream: Gateway;
let proxy: TestProxy;
beforeAll(async () => {
  upstream = createGateway(echoOptions);
  const { port } = await upstream.listen({ host: "127.0.0.1", port: 0 });
  proxy = await startProxy(`http://127.0.0.1:${port}`, echoFiles);
});
afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  await upstream.close();
});

test.each([
  { version: "HTTP/1.1", createExchange: createHttp1Exchange },
  { version: "HTTP/2", createExchange: createHttp2Exchange },
])("over $version, a proxy passes the transcoding suite", async ({ createExchange }) => {
  expect(await failures(byHand, createExchange(new URL(proxy.baseUrl)))).toEqual([]);
});
