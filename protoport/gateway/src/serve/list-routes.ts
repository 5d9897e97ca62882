import { type PathTemplate, printPathTemplate } from "../protocols/index.ts";
import { serverEndpoint } from "./endpoint.ts";
import type { Routes } from "./routes.ts";

/** A path that a gateway serves. An RPC has a route for the RPC protocols, and a route for each HTTP rule. */
export interface GatewayRoute {
  /**
   * The HTTP methods that the route accepts, where `*` means every method. Rules with GET include HEAD. OPTIONS is
   * included if the gateway responds to CORS preflights.
   */
  readonly httpMethods: readonly string[];
  /** The path with the gateway's prefix, such as `/shop.v1.Shop/GetOrder`. A REST route has a path template. */
  readonly path: string;
  /** A REST route's parsed template, without the prefix. `undefined` for other routes. */
  readonly template: PathTemplate | undefined;
  /** `/package.Service/Method` of the RPC, or `undefined` for a path of an endpoint or of MCP. */
  readonly procedure: string | undefined;
}

/** Returns all routes. `OPTIONS *` is excluded because it has no path. */
export function listRoutes({ paths, protocols, prefix, cors, rest }: Routes): readonly GatewayRoute[] {
  const preflight = cors === undefined ? [] : ["OPTIONS"];
  const route = (
    httpMethods: readonly string[],
    path: string,
    procedure?: string,
    template?: PathTemplate,
  ): GatewayRoute => ({ httpMethods: [...new Set([...httpMethods, ...preflight])], path, template, procedure });
  const exact = [...paths].map(([path, target]) =>
    target.kind === "endpoint" ? route(target.httpMethods, path) : route(target.rpc.httpMethods, path, target.rpc.name),
  );
  const ofBodies = protocols.all.flatMap(({ bodyPath }) =>
    bodyPath === undefined ? [] : [route(["POST"], prefix + bodyPath)],
  );
  const ofRules = rest.bindings.map(({ pattern: { httpMethod }, procedure, template }) =>
    route(
      httpMethod === "GET" ? ["GET", "HEAD"] : [httpMethod],
      prefix + printPathTemplate(template),
      procedure,
      template,
    ),
  );
  return [...exact.filter(({ path }) => path !== serverEndpoint.path), ...ofBodies, ...ofRules];
}
