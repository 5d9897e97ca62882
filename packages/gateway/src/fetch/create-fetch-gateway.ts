import {
  compileRoutes,
  createFaultReporter,
  createServer,
  servingOptionNames,
  type ServingOptions,
} from "../serve/index.ts";
import { refuseUnknownOptions } from "../options/index.ts";
import { createFetchHandler, type FetchHandler } from "./fetch-handler.ts";
import { webGzip } from "./web-gzip.ts";

/** A gateway that is given requests, and never listens itself. */
export interface FetchGateway {
  /** Answers one request over REST, Connect or gRPC-Web. Rejects only with what `next` rejects with. */
  readonly fetch: FetchHandler;
}

/**
 * Creates a gateway from Connect routes, for platforms without node.
 *
 * Bodies and messages may be compressed with gzip, unless `acceptCompression` says otherwise. The limits on connections
 * and on the time that a request takes to arrive have no effect: they are up to the server.
 *
 * @throws Error listing every problem of the HTTP rules, and of `requestPathPrefix`, at once; TypeError for options that
 * do not exist
 */
export function createFetchGateway(options: ServingOptions): FetchGateway {
  refuseUnknownOptions(options, servingOptionNames, "createFetchGateway");
  const report = createFaultReporter(options.onFault);
  const routes = compileRoutes(options, { compressions: [webGzip] }, report);
  return { fetch: createFetchHandler(createServer(options, routes, report, undefined)) };
}
