import type { HandlerContext } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { createGateway } from "../../src/index.ts";
import { KitchenSink } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";

// protoport/docs/reference/rest-options.md documents this behaviour as independent of REST options.

const rpc = "/kitchensink.v1.KitchenSink/Query?x=a%20b";

test.each<[name: string, path: string, sent?: RequestInit]>([
  ["REST", "/v1/query?f_string=a%20b&tags=x"],
  ["Connect", rpc, { body: "{}", headers: { "content-type": "application/json" } }],
  ["gRPC-Web", rpc, { body: new Uint8Array(5), headers: { "content-type": "application/grpc-web" } }],
])("over %s, a handler gets the URL and the method as sent", async (_name, path, sent) => {
  const requests: Pick<HandlerContext, "requestMethod" | "url">[] = [];
  const gateway = createGateway({
    routes: (router) =>
      router.service(KitchenSink, {
        query: (_, { requestMethod, url }) => (requests.push({ requestMethod, url }), {}),
      }),
  });
  const requestMethod = sent === undefined ? "GET" : "POST";
  const url = `http://orders.example${path}`;
  await gateway.fetch(new Request(url, { ...sent, method: requestMethod }));
  expect(requests).toEqual([{ requestMethod, url }]);
});
