import { Code } from "@connectrpc/connect";
import { credentialRefusalOf, principalKey } from "@protoport/auth";
import type { CompletedRequest } from "@protoport/gateway";
import { optionOf } from "@protoport/gateway/descriptors";
import { errorCodeOf } from "@protoport/gateway/errors";
import type { ProxyOptions } from "../create-proxy.ts";
import type { ProxyConfiguration } from "../settings/index.ts";

/** Maximum logged characters per path. No route matches a longer path. */
const maxLoggedPathLength = 256;

/**
 * Returns a function that writes one JSON line per request, or `undefined` if the log is off. Lines never contain
 * header fields, queries or bodies.
 */
export function createAccessLog(
  which: ProxyConfiguration["accessLog"],
  write: (line: string) => void,
): ((request: CompletedRequest) => void) | undefined {
  if (which === "off") return undefined;
  return (request) => {
    if (which === "all" || request.error !== undefined) write(JSON.stringify(toAccessRecord(request)));
  };
}

function toAccessRecord(request: CompletedRequest): object {
  const refusal = credentialRefusalOf(request.error);
  const { error, procedure, protocol, httpMethod, path, httpStatus, durationMs, peer, contextValues } = request;
  const option = error && optionOf(error);
  return {
    time: new Date().toISOString(),
    procedure,
    protocol,
    httpMethod,
    path: path.slice(0, maxLoggedPathLength),
    httpStatus,
    code: error === undefined ? "OK" : Code[error.code],
    errorCode: error && errorCodeOf(error),
    setting: option && shownNames[option],
    durationMs: Math.round(durationMs * 1_000) / 1_000,
    peer: peer.address,
    caller: contextValues.get(principalKey)?.subject,
    refusal: refusal?.kind,
    reason: refusal?.reason,
  };
}

/** The settings that error messages name instead of gateway options. Undefined for options without a setting. */
export const shownNames: Required<Exclude<ProxyOptions["nameOptions"], boolean | undefined>> = {
  acceptCompression: undefined,
  "cors.origins": "cors.origins",
  "cors.origins or crossSite": "cors.origins",
  ignoreBodies: "rest.options: [ignoreBodies]",
  jsonClientStreams: "rest.options: [jsonClientStreams]",
  "jsonOptions.registry": undefined,
  lenient: "rest.options: [lenient]",
  "lenient or ignoredQueryParameters": "rest.options: [lenient]",
  "limits.headerBytes": "headerBytes",
  "limits.headerTimeoutMs": undefined,
  "limits.requestTimeoutMs": undefined,
  "limits.urlBytes": undefined,
  mapsInQuery: "rest.options: [mapsInQuery]",
  maxTimeoutMs: undefined,
  readMaxBytes: "requestBytes",
  requireConnectProtocolHeader: undefined,
  "rest.json.canonicalIntegers": undefined,
  "rest.json.unknownFields": undefined,
  "sameValueAsPath or lenient": "rest.options: [sameValueAsPath] or [lenient]",
};
