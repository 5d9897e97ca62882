import { cors as connectCors } from "@connectrpc/connect";
import { type Exchange, integerBetween, isToken, type OptionNames, required, withCode } from "../http/index.ts";

/** Options for {@link createCors}: the allowed origins, and the header fields that pages may send and read. */
export interface CorsOptions {
  /**
   * The allowed origins in the form that browsers send (`https://shop.example`), or `"*"` for every origin. Cookies are
   * never used, because the credential is in a header that the page must set.
   */
  readonly origins: readonly string[] | "*";
  /** The request header fields that pages may send, in addition to protocol fields. */
  readonly allowedHeaders?: readonly string[];
  /** The response header fields that pages may read, in addition to protocol fields. */
  readonly exposedHeaders?: readonly string[];
  /** Seconds for which browsers may cache the response to a preflight. Default 7200 seconds, the limit in Chrome. */
  readonly maxAgeSeconds?: number;
}

/** The names of all {@link CorsOptions}. */
export const corsOptionNames: OptionNames<CorsOptions> = {
  origins: required,
  allowedHeaders: true,
  exposedHeaders: true,
  maxAgeSeconds: integerBetween(0, Number.MAX_SAFE_INTEGER),
};

/** The CORS protocol in the Fetch standard (§3.2). Header fields are a list of name, value, name, value, … */
export interface Cors {
  /** Whether pages of an origin may call. With `origins: "*"`, only without credentials, as in Fetch (§3.2.5). */
  allows(origin: string, hasCredentials: boolean): boolean;
  /**
   * Returns the header fields for the response to a preflight, or `undefined` for any other request. The response is a
   * 204 without a body. The response is the same for every path, so that it does not reveal which paths exist.
   */
  preflight(request: CorsRequest): readonly string[] | undefined;
  /** Returns the header fields that allow a page to read the response to any request except a preflight. */
  responseFields(origin: string | null): readonly string[];
}

/** The parts of a request that CORS depends on. A header field that the client did not send is `null`. */
interface CorsRequest {
  readonly httpMethod: string;
  readonly origin: string | null;
  readonly accessControlRequestMethod: string | null;
}

// The methods that RPCs and endpoints have. Every path that accepts GET also accepts HEAD.
const protocolMethods = ["GET", "HEAD", "POST"];
const protocolRequestHeaders = ["Authorization", "Grpc-Timeout", "X-Server-Timeout"];
const protocolResponseHeaders = ["WWW-Authenticate", "Allow", "Retry-After"];
const maxAgeSecondsDefault = 7200;

/**
 * Creates a gateway's CORS header fields.
 *
 * @param httpMethods - the methods in HTTP rules and endpoints, and `*` for a rule that accepts every method
 * @throws TypeError with the code ERR_OPTIONS that quotes an origin that no browser sends
 */
export function createCors(options: CorsOptions, httpMethods: readonly string[]): Cors {
  const { origins } = options;
  if (origins !== "*") requireOrigins(origins);
  const allowedOrigins = origins === "*" ? undefined : new Set(origins);
  const allowed = joinFieldNames(connectCors.allowedHeaders, protocolRequestHeaders, options.allowedHeaders);
  const exposed = joinFieldNames(connectCors.exposedHeaders, protocolResponseHeaders, options.exposedHeaders);
  const preflightFields = [
    "access-control-allow-methods",
    // Browsers accept "*" for every method in requests without cookies or similar credentials (Fetch §3.2.3).
    httpMethods.includes("*") ? "*" : [...new Set([...protocolMethods, ...httpMethods])].toSorted().join(", "),
    "access-control-allow-headers",
    allowed,
    "access-control-max-age",
    String(options.maxAgeSeconds ?? maxAgeSecondsDefault),
  ];
  // `Vary` is also sent to requests without an origin, because the response depends on the origin (RFC 9110 §12.5.5).
  const vary = allowedOrigins === undefined ? [] : ["vary", "origin"];
  const allowOrigin = (origin: string | null): readonly string[] => {
    if (origin === null) return [];
    if (allowedOrigins === undefined) return ["access-control-allow-origin", "*"];
    return allowedOrigins.has(origin) ? ["access-control-allow-origin", origin] : [];
  };
  return {
    allows: (origin, hasCredentials) => allowedOrigins?.has(origin) ?? !hasCredentials,
    preflight({ httpMethod, origin, accessControlRequestMethod }) {
      // A preflight is an OPTIONS request with these two fields (Fetch §3.2.2).
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

/** Refuses an origin with a path, capital letters or the default port, which would never match (RFC 6454 §6.2). */
function requireOrigins(origins: readonly string[]): void {
  const refused = Array.isArray(origins) ? origins.find((origin) => !isCorsOrigin(origin)) : origins;
  if (refused === undefined) return;
  const expected = 'cors.origins must be "*", or an array with origins such as "https://shop.example"';
  throw withCode(new TypeError(`${expected}, got ${JSON.stringify(refused)}`), "ERR_OPTIONS");
}

function isCorsOrigin(text: string): boolean {
  // Pages without an origin, such as sandboxed ones, send "null". Applications may have their own scheme.
  if (text === "null") return true;
  if (!URL.canParse(text)) return false;
  const { protocol, host } = new URL(text);
  return text === `${protocol}//${host}`;
}

/** Joins field names. @throws TypeError with the code ERR_OPTIONS for a name that no field has (RFC 9110 §5.1) */
function joinFieldNames(...lists: readonly (readonly string[] | undefined)[]): string {
  const names = new Map<string, string>();
  for (const name of lists.flatMap((list) => list ?? [])) {
    const problem = `cors.allowedHeaders and cors.exposedHeaders must contain field names, got ${JSON.stringify(name)}`;
    if (!isToken(name)) throw withCode(new TypeError(problem), "ERR_OPTIONS");
    names.set(name.toLowerCase(), name);
  }
  return [...names.values()].join(", ");
}

/** Responds to a preflight and returns `true`, or adds CORS fields to another response and returns `false`. */
export function respondToPreflight(exchange: Exchange, cors: Cors): boolean {
  const origin = exchange.get("origin");
  const accessControlRequestMethod = exchange.get("access-control-request-method");
  const fields = cors.preflight({ httpMethod: exchange.httpMethod, origin, accessControlRequestMethod });
  if (fields === undefined) addCorsFields(exchange, cors, null);
  else exchange.respond(204, fields);
  return fields !== undefined;
}

/**
 * Adds the CORS fields that allow pages from other origins to read the response, unless the response already has them.
 *
 * @param defaultOrigin - the value for a missing `Origin` field: `null`, or `""` if the header was not read completely
 */
export function addCorsFields(exchange: Exchange, cors: Cors, defaultOrigin: "" | null): void {
  const { addedFields } = exchange;
  const fields = cors.responseFields(exchange.get("origin") ?? defaultOrigin);
  if (!fields.every((text) => addedFields.includes(text))) exchange.addedFields = [...addedFields, ...fields];
}
