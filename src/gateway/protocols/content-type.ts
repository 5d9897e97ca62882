import type { Protocol } from "./call-protocol.ts";

/** How the messages of an RPC are written: in protobuf's binary format, or in JSON. */
export type RpcFormat = "binary" | "json";

/** The meaning of the content type of an RPC request. */
export interface RpcContentType {
  readonly protocol: "connect" | "grpc" | "grpc-web";
  readonly format: RpcFormat;
  /** Whether it is a stream of the Connect protocol. */
  readonly stream: boolean;
  /** Whether the body is base64, as in gRPC-Web text. */
  readonly text: boolean;
}

/**
 * Reads the content type of an RPC request; `undefined` for one that no protocol has.
 *
 * Media types are case-insensitive, and JSON may have a charset of UTF-8 (RFC 9110 §8.3).
 */
export function readRpcContentType(value: string): RpcContentType | undefined {
  return rpcContentTypes.get(value.toLowerCase().replace(charsetOfJson, "json"));
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

/** The content types of RPCs as the protocols spell them; {@link readRpcContentType} reads other spellings. */
export const rpcContentTypes: ReadonlyMap<string, RpcContentType> = new Map([
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

/** Returns the content type of a refusal of gRPC or gRPC-Web: the client's own, as far as it is known. */
export function refusalContentType(sent: string | null): string {
  const [type = ""] = (sent ?? "").toLowerCase().split(";");
  const [, base = "application/grpc", format = ""] =
    /^(application\/grpc(?:-web(?:-text)?)?)(\+(?:proto|json)$)?/.exec(type) ?? [];
  return base + format;
}

/** Returns the protocol in which to answer a request that matches nothing. */
export function callerProtocol(contentType: string, hasConnectVersion: boolean): Protocol {
  const type = contentType.toLowerCase();
  if (type.startsWith("application/grpc-web")) return "grpc-web";
  if (type.startsWith("application/grpc")) return "grpc";
  return hasConnectVersion || type.startsWith("application/connect+") ? "connect" : "rest";
}
