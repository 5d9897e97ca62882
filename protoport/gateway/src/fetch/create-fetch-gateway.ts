import {
  compileRoutes,
  createFaultReporter,
  createServer,
  servingOptionNames,
  type ServingOptions,
} from "../serve/index.ts";
import { describeUnusedLabels } from "../protobuf/index.ts";
import { refuseUnknownOptions } from "../http/index.ts";
import { createFetchHandler, type FetchHandler } from "./fetch-handler.ts";
import { webGzip } from "./web-gzip.ts";

/** A gateway that handles Fetch requests, and does not listen on a port. */
export interface FetchGateway {
  /** Handles one request over REST, Connect or gRPC-Web. Rejects only if `next` rejects. */
  readonly fetch: FetchHandler;
}

/**
 * Creates a gateway from Connect routes, for platforms without node.
 *
 * Bodies and messages may be compressed with gzip, unless `acceptCompression` is set. The limits on connections and the
 * timeouts for arriving requests have no effect, because the platform's server enforces its own limits.
 *
 * @throws Error that lists all problems in the HTTP rules and `requestPathPrefix`, or TypeError for unknown options
 */
export function createFetchGateway(options: ServingOptions): FetchGateway {
  refuseUnknownOptions(options, servingOptionNames, "createFetchGateway");
  const report = createFaultReporter(options.onFault);
  const routes = compileRoutes(options, { compressions: [webGzip] }, report);
  for (const line of describeUnusedLabels(options.visibility, routes.visibilityLabels)) console.warn(line);
  return { fetch: createFetchHandler({ server: createServer(options, routes, report, undefined) }) };
}
