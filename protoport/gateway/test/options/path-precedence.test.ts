import { describe, expect, test } from "vitest";
import type { RestOptions, RestServiceOptions } from "../../src/index.ts";
import { OrderService } from "../../../testing/src/gen/orders/v1/orders_pb.ts";
import { type Field, openEveryTransport, shared, transportNames } from "@protoport/testing";

// No compatibility option can change which order is deleted. The path determines it.

// oxfmt-ignore
const all: RestServiceOptions = {
  ignoredQueryParameters: ["*"], ignoreBodies: true, mapsInQuery: true, grpcMetadata: true, jsonClientStreams: true,
  int64Numbers: true, lenient: true, sameValueAsPath: true, updateMaskFromBody: true,
};
// An RPC whose body could name another order.
const selector = "orders.v1.OrderService.DeleteOrder";
const additionalBindings = [{ pattern: { case: "post", value: "/orders/{id}:delete" }, body: "*" }] as const;
const deleting = { case: "delete", value: "/orders/{id}" } as const;
const withBody: RestOptions["rules"] = [{ selector, pattern: deleting, additionalBindings: [...additionalBindings] }];
const json: Field = ["content-type", "application/json"];

const header: readonly { readonly name: string; readonly header: readonly Field[] }[] = [
  { name: "Grpc-Metadata-Id", header: [["grpc-metadata-id", "8"]] },
  { name: "X-HTTP-Method-Override", header: [["x-http-method-override", "GET"]] },
  { name: "X-Original-URL", header: [["x-original-url", "/orders/8"]] },
  { name: "Grpc-Metadata-X-Original-URL", header: [["grpc-metadata-x-original-url", "/orders/8"]] },
];
const queries = ["id=8", "id=7&id=8", "ID=8", "i%64=8", "id[0]=8", "id[id]=8", "order.id=8", "request.id=8", "a&id=8"];
const bodies = ['{"id":"8"}', '{"id":8}', '[{"id":"8"}]', '{"id":"7","id":"8"}', '{"__proto__":{"id":"8"}}'];
const none: readonly Field[] = [];
const requests = ["DELETE /orders/7", "POST /orders/7:delete"].flatMap((request) => [
  ...queries.map((query) => ({ request: `${request}?${query}`, header: none, body: "" })),
  ...header.map((each) => ({ request, header: each.header, body: "" })),
  ...bodies.map((body) => ({ request, header: [json], body })),
]);

describe.each([
  { name: "no options", rest: { rules: withBody } },
  { name: "all options", rest: { service: () => all, rules: withBody } },
  { name: "all options but lenient", rest: { service: () => ({ ...all, lenient: false }), rules: withBody } },
])("path precedence with $name", ({ rest }) => {
  const deleted: string[] = [];

  const gateway = shared(() =>
    openEveryTransport({
      rest,
      routes: (router) => router.service(OrderService, { deleteOrder: ({ id }) => (deleted.push(String(id)), {}) }),
    }),
  );

  test.each(transportNames)("over %s, a request deletes only the order in the path", async (transport) => {
    deleted.length = 0;
    const { httpStatus: plain } = await gateway.ask(transport, { httpMethod: "DELETE", path: "/orders/7", header: [] });
    expect([plain, deleted]).toEqual([200, ["7"]]);
    for (const { request, header: fields, body } of requests) {
      const [httpMethod = "", path = ""] = request.split(" ");
      const sent = { httpMethod, path, header: fields, ...(body !== "" && { body: Buffer.from(body) }) };
      deleted.length = 0;
      const { httpStatus } = await gateway.ask(transport, sent);
      // The order in the path is deleted, or the request is refused.
      expect({ request, body, httpStatus, deleted }).toEqual({
        request,
        body,
        httpStatus: deleted.length === 0 ? expect.toSatisfy((status: number) => status >= 400 && status < 500) : 200,
        deleted: deleted.length === 0 ? [] : ["7"],
      });
    }
  });
});
