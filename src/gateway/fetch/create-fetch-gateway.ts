import { createServing, type ServingOptions } from "../calls/index.ts";
import { createFetchHandler, type FetchHandler } from "./fetch-handler.ts";
import { webGzip } from "./web-gzip.ts";

/** A gateway that is given requests, and never listens itself. */
export interface FetchGateway {
  /** Answers one request over REST, Connect or gRPC-Web. Rejects only with what `next` rejects with. */
  readonly fetch: FetchHandler;
}

/**
 * Creates a gateway that needs nothing of node, from Connect routes.
 *
 * Bodies and messages may be in gzip, unless `acceptCompression` says otherwise. Of the limits, those on connections and
 * on how long a request may take to arrive are the server's.
 *
 * @throws Error listing every problem of the HTTP rules, and of `requestPathPrefix`, at once
 */
export function createFetchGateway(options: ServingOptions): FetchGateway {
  return { fetch: createFetchHandler(createServing(options, { compressions: [webGzip] })) };
}
