import { cors as connectCors } from "@connectrpc/connect";

/** Which pages of other origins may call, and what they may send and see. */
export interface CorsOptions {
  /**
   * Origins that may call, as browsers send them (`https://shop.example`), or `"*"` for every origin. No
   * cookies are ever involved: the credential is a header that the page has to know.
   */
  readonly origins: readonly string[] | "*";
  /** Request header fields that pages may send, beside those that the protocols need. */
  readonly allowedHeaders?: readonly string[];
  /** Response header fields that pages may read, beside those that the protocols need. */
  readonly exposedHeaders?: readonly string[];
  /** Seconds for which a browser may remember the answer to a preflight. Default 7200, Chrome's own limit. */
  readonly maxAgeSeconds?: number;
}

/** The CORS protocol of the Fetch standard (§3.2), for one configuration. Header fields are name, value, name, value, … */
export interface Cors {
  /**
   * The header fields of the answer to a preflight, a 204 without a body; `undefined` when the request is none.
   *
   * The answer is the same for every path, so that it tells nobody which paths there are.
   */
  preflight(request: CorsRequest): readonly string[] | undefined;
  /** The header fields to add to any other answer, errors included: a page must be able to read why it was refused. */
  responseFields(origin: string | null): readonly string[];
}

/** What CORS looks at in a request; a field that was not sent is `null`. */
export interface CorsRequest {
  readonly httpMethod: string;
  readonly origin: string | null;
  readonly accessControlRequestMethod: string | null;
}

const allowedMethods = "DELETE, GET, HEAD, PATCH, POST, PUT";
const protocolRequestHeaders = ["Authorization", "Grpc-Timeout", "X-Server-Timeout"];
const protocolResponseHeaders = ["WWW-Authenticate", "Allow", "Retry-After"];
const maxAgeSecondsDefault = 7200;

/** Prepares the CORS answers of a configuration. */
export function createCors(options: CorsOptions): Cors {
  const { origins } = options;
  const known = origins === "*" ? undefined : new Set(origins);
  const allowed = joinNames(connectCors.allowedHeaders, protocolRequestHeaders, options.allowedHeaders);
  const exposed = joinNames(connectCors.exposedHeaders, protocolResponseHeaders, options.exposedHeaders);
  const preflightFields = [
    "access-control-allow-methods",
    allowedMethods,
    "access-control-allow-headers",
    allowed,
    "access-control-max-age",
    String(options.maxAgeSeconds ?? maxAgeSecondsDefault),
  ];
  // RFC 9110 §12.5.5: where the answer depends on the origin, a cache has to know, also when there was none.
  const vary = known === undefined ? [] : ["vary", "origin"];
  const allowOrigin = (origin: string | null): readonly string[] => {
    if (origin === null) return [];
    if (known === undefined) return ["access-control-allow-origin", "*"];
    return known.has(origin) ? ["access-control-allow-origin", origin] : [];
  };
  return {
    preflight({ httpMethod, origin, accessControlRequestMethod }) {
      // Fetch §3.2.2: a preflight is an OPTIONS with these two; any other OPTIONS is a method like others.
      if (httpMethod !== "OPTIONS" || origin === null || accessControlRequestMethod === null) return undefined;
      const allow = allowOrigin(origin);
      return allow.length === 0 ? vary : [...allow, ...preflightFields, ...vary];
    },
    responseFields(origin) {
      const allow = allowOrigin(origin);
      return allow.length === 0 ? vary : [...allow, "access-control-expose-headers", exposed, ...vary];
    },
  };
}

function joinNames(...lists: readonly (readonly string[] | undefined)[]): string {
  const names = new Map<string, string>();
  for (const name of lists.flatMap((list) => list ?? [])) names.set(name.toLowerCase(), name);
  return [...names.values()].join(", ");
}
