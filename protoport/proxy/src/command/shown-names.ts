import type { ProxyOptions } from "../create-proxy.ts";

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
