import { afterAll, beforeAll, describe, test } from "vitest";
import { KitchenSink, Shelves, startProxy, type TestProxy } from "@protoport/testing/proxy";
import { LegacySink } from "../../../../../testing/src/gen/kitchensink/v1/legacy_pb.ts";
import { type Http1Connection, openHttp1 } from "../../../../../testing/src/http/http1-connection.ts";
import { type Http2Connection, openHttp2, startKitchenSink, type TestGateway } from "@protoport/testing";
import { isPeerAtLeast } from "../../../../../testing/src/peer-version.ts";
// oxfmt-ignore
import { describeRequest, corpusGroups, expectResponse, toRequest
} from "../../../../../gateway/test/wire/corpus/corpus.ts";

// The gateway's corpus, with an upstream gRPC server instead of handlers.

let upstream: TestGateway;
let proxy: TestProxy;
let http2: Http2Connection;
beforeAll(async () => {
  upstream = await startKitchenSink();
  const { port } = upstream.address;
  proxy = await startProxy(`http://127.0.0.1:${port}`, [KitchenSink.file, LegacySink.file, Shelves.file]);
  http2 = await openHttp2(proxy.address);
});
afterAll(async () => {
  http2[Symbol.dispose]();
  await proxy[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

describe.each(corpusGroups)("the corpus of $name through a proxy", ({ cases: group }) => {
  // The response to a message with 100 levels has 101 levels, more than protobuf readers accept.
  const shallow = group.filter((row) => row.rule !== "a path of 100 names");
  // Before 2.16, protobuf-es, which the upstream uses, drops the map key `__proto__`.
  const kept = shallow.filter(
    (row) => isPeerAtLeast("@bufbuild/protobuf", "2.16") || !describeRequest(row).includes('"__proto__":'),
  );
  const rows = kept.map((row) => ({ ...row, requestLine: describeRequest(row) }));
  let http1: Http1Connection;
  beforeAll(async () => {
    http1 = await openHttp1(proxy.address);
  });
  afterAll(() => http1[Symbol.dispose]());

  test.each(rows.filter((row) => row.only === undefined))("$rule: $requestLine over HTTP/1.1", async (row) => {
    const request = toRequest(row);
    http1.request(request);
    expectResponse(await http1.readResponse(request.httpMethod), row.want);
  });

  test.each(rows)("$rule: $requestLine over HTTP/2", async (row) => {
    expectResponse(await http2.exchange(toRequest(row)), row.want);
  });
});
