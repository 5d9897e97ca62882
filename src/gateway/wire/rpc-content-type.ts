/** What the content type of a request to an RPC path says. */
export interface RpcContentType {
  readonly protocol: "connect" | "grpc" | "grpc-web";
  readonly format: "binary" | "json";
  /** The envelopes of a Connect stream, as against the bare message of a unary call. */
  readonly stream: boolean;
  /** gRPC-Web in base64. */
  readonly text: boolean;
}

/**
 * Reads the content type of an RPC.
 *
 * Media types are case-insensitive, and a charset of UTF-8 may stand beside JSON (RFC 9110 §8.3).
 *
 * @returns `undefined` for one that no protocol has
 */
export function readRpcContentType(value: string): RpcContentType | undefined {
  return known.get(value) ?? known.get(value.toLowerCase().replace(charsetOfJson, "json"));
}

const charsetOfJson = /json; ?charset="?utf-?8"?$/;

function entry(
  value: string,
  protocol: RpcContentType["protocol"],
  format: RpcContentType["format"],
  { stream = false, text = false } = {},
): [string, RpcContentType] {
  return [value, { protocol, format, stream, text }];
}

const known: ReadonlyMap<string, RpcContentType> = new Map([
  entry("application/proto", "connect", "binary"),
  entry("application/json", "connect", "json"),
  entry("application/connect+proto", "connect", "binary", { stream: true }),
  entry("application/connect+json", "connect", "json", { stream: true }),
  entry("application/grpc", "grpc", "binary"),
  entry("application/grpc+proto", "grpc", "binary"),
  entry("application/grpc+json", "grpc", "json"),
  entry("application/grpc-web", "grpc-web", "binary"),
  entry("application/grpc-web+proto", "grpc-web", "binary"),
  entry("application/grpc-web+json", "grpc-web", "json"),
  entry("application/grpc-web-text", "grpc-web", "binary", { text: true }),
  entry("application/grpc-web-text+proto", "grpc-web", "binary", { text: true }),
  entry("application/grpc-web-text+json", "grpc-web", "json", { text: true }),
]);

/**
 * In which protocol a request that matches nothing wants to be told so, by what it says of itself.
 */
export function callerProtocol(
  contentType: string,
  hasConnectVersion: boolean,
): "connect" | "grpc" | "grpc-web" | "rest" {
  const type = contentType.toLowerCase();
  if (type.startsWith("application/grpc-web")) return "grpc-web";
  if (type.startsWith("application/grpc")) return "grpc";
  return hasConnectVersion || type.startsWith("application/connect+") ? "connect" : "rest";
}
