import { describe, test, expect } from "vitest";
import { KitchenSink, Shelves, startProxy } from "@protoport/testing/proxy";
import { LegacySink } from "../../../../../testing/src/gen/kitchensink/v1/legacy_pb.ts";
import { isPeerAtLeast, openHttp1, openHttp2, shared, startKitchenSink } from "@protoport/testing";
import { createHttp1Exchange, createHttp2Exchange } from "../../../../../conformance/runner/index.ts";
import { createGateway } from "../../../../../gateway/src/index.ts";
import { echoFiles } from "../../../../../testing/src/gateway/grpc-programs.ts";
import { byHand } from "../../../../../testing/src/transcoding/all-cases.ts";
import { echoOptions } from "../../../../../testing/src/transcoding/echo-backend.ts";
import { failures } from "../../../../../testing/src/transcoding/failures.ts";
// oxfmt-ignore
import { describeRequest, corpusGroups, expectResponse, toRequest
} from "../../../../../gateway/test/wire/corpus/corpus.ts";

// The gateway's corpus, with an upstream gRPC server instead of handlers.

const upstream = shared(() => startKitchenSink());
const proxy = shared(() =>
  startProxy(`http://127.0.0.1:${upstream.address.port}`, [KitchenSink.file, LegacySink.file, Shelves.file]),
);
const http2 = shared(() => openHttp2(proxy.address));

describe.each(corpusGroups)("the corpus of $name through a proxy", ({ cases: group }) => {
  // The response to a message with 100 levels has 101 levels, more than protobuf readers accept.
  const shallow = group.filter((row) => row.rule !== "a path of 100 names");
  // Before 2.16, protobuf-es, which the upstream uses, drops the map key `__proto__`.
  const rows = shallow
    .filter((row) => isPeerAtLeast("@bufbuild/protobuf", "2.16") || !describeRequest(row).includes('"__proto__":'))
    .map((row) => ({ ...row, requestLine: describeRequest(row) }));
  const http1 = shared(() => openHttp1(proxy.address));

  test.each(rows.filter((row) => row.only === undefined))("$rule: $requestLine over HTTP/1.1", async (row) => {
    const request = toRequest(row);
    http1.request(request);
    expectResponse(await http1.readResponse(request.httpMethod), row.want);
  });

  test.each(rows)("$rule: $requestLine over HTTP/2", async (row) => {
    expectResponse(await http2.exchange(toRequest(row)), row.want);
  });
});

const echoProxy = shared(async () => {
  const echo = createGateway(echoOptions);
  const { port } = await echo.listen({ host: "127.0.0.1", port: 0 });
  const proxied = await startProxy(`http://127.0.0.1:${port}`, echoFiles);
  const close = () => Promise.all([proxied[Symbol.asyncDispose](), echo.close()]);
  return { ...proxied, [Symbol.asyncDispose]: async () => void (await close()) };
});

test.each([
  { version: "HTTP/1.1", createExchange: createHttp1Exchange },
  { version: "HTTP/2", createExchange: createHttp2Exchange },
])("over $version, a proxy passes the transcoding suite", async ({ createExchange }) => {
  expect(await failures(byHand, createExchange(new URL(echoProxy.baseUrl)))).toEqual([]);
});
