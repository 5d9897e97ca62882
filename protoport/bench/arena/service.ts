// The entry's handlers, and the options for the gateway that serves the handlers.
import { readFileSync } from "node:fs";
import { fromJson } from "@bufbuild/protobuf";
import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import type { GatewayOptions } from "@protoport/gateway";
import { BenchmarkService, EndpointService, type Item, ItemSchema } from "./gen/benchmark_pb.ts";

const benchmark: ServiceImpl<typeof BenchmarkService> = {
  getSum: ({ a, b }) => ({ result: a + b }),
  async *streamSum({ a, b, count }) {
    for (let sent = 0; sent < count; sent += 1) yield { result: a + b + sent };
  },
};

function endpoints(items: readonly Item[]): ServiceImpl<typeof EndpointService> {
  return {
    baseline({ a, b, body }) {
      const added = body === undefined ? 0 : Number(Buffer.from(body.data).toString());
      if (!Number.isSafeInteger(added)) throw new ConnectError("the body must be an integer", Code.InvalidArgument);
      return { contentType: "text/plain", data: Buffer.from(String(a + b + added)) };
    },
    listItems({ count, m }) {
      const listed = items.slice(0, count).map((item) => ({ ...item, total: item.price * item.quantity * m }));
      return { items: listed, count: listed.length };
    },
  };
}

/** Reads a data set, an array of items in JSON. */
export function readItems(file: string): readonly Item[] {
  const items: unknown = JSON.parse(readFileSync(file, "utf8"));
  if (!Array.isArray(items)) throw new TypeError(`${file} must contain an array`);
  return items.map((item) => fromJson(ItemSchema, item));
}

/**
 * Returns options for a gateway that serves both services. The gateway's JSON includes fields that are zero or false.
 */
export function optionsFor(items: readonly Item[]): GatewayOptions {
  const endpointService = endpoints(items);
  return {
    routes: (router) => router.service(BenchmarkService, benchmark).service(EndpointService, endpointService),
    jsonOptions: { alwaysEmitImplicit: true },
  };
}
