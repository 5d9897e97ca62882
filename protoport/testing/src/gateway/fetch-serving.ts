import type { ServiceImpl } from "@connectrpc/connect";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createFetchGateway, type FetchHandler, type ServingOptions } from "../../../gateway/src/fetch/entry.ts";

/** Serves a greenhouse over Fetch. The stream of readings is at `GET /sensors/{sensor}/readings`. */
export function serveByFetch(
  implementation: Partial<ServiceImpl<typeof GreenhouseService>>,
  options: Partial<ServingOptions> = {},
): FetchHandler {
  const pattern = { case: "get", value: "/sensors/{sensor}/readings" } as const;
  return createFetchGateway({
    routes: (router) => router.service(GreenhouseService, implementation),
    ...options,
    rest: { rules: [{ selector: "greenhouse.v1.GreenhouseService.WatchReadings", pattern }], ...options.rest },
  }).fetch;
}

/** Adds chunks to a body when its reader asks for them. */
export type Pull = (controller: {
  enqueue(piece: unknown): void;
  error(reason: unknown): void;
  close(): void;
}) => void | Promise<void>;

/** Returns a request whose body is created on demand. */
export function pulledRequest(pull: Pull): Request {
  const body = new ReadableStream<Uint8Array>({ pull }, { highWaterMark: 0 });
  const headers = { "content-type": "application/json" };
  return new Request("http://fetch.example/beds/7:water", { method: "POST", headers, body, duplex: "half" });
}
