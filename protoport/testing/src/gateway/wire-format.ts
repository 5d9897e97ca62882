import { create, type DescMessage, type MessageInitShape, toBinary, toJsonString } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import type { Protocol } from "../../../gateway/src/index.ts";
import type { FormatName } from "../../../gateway/src/protocols/index.ts";
import { encodeEnvelope } from "./envelope.ts";
import { statelessRequest, toolNameOf } from "./mcp.ts";
import type { Address, Field, HttpResponse, HttpRequest, HttpVersion } from "../http/exchange.ts";
import { exchangeHttp1 } from "../http/http1-connection.ts";
import { exchangeHttp2 } from "../http/http2-connection.ts";

/** A protocol with a codec, in which a unary call can be encoded. */
export interface WireFormat {
  readonly name: WireFormatName | "mcp";
  readonly protocol: Protocol;
  readonly codec: "path" | FormatName;
  /** The HTTP versions that support the format. gRPC needs HTTP/2's trailers. */
  readonly httpVersions: readonly HttpVersion[];
  /** The content type for requests and successful responses. `undefined` for REST. */
  readonly contentType: string | undefined;
  /** The header fields that a well-behaved client sends in addition to the content type. */
  readonly header: readonly Field[];
  /** Returns the field by which a client sets a deadline, or `undefined` if the protocol has no deadlines. */
  readonly timeout: ((timeoutMs: number) => Field) | undefined;
}

/** The names of each protocol's wire formats. A new protocol does not compile until this type has its formats. */
interface NamesByProtocol {
  rest: "rest";
  connect: `connect-${FormatName}`;
  grpc: EnvelopedName<"grpc">;
  "grpc-web": EnvelopedName<"grpc-web"> | "grpc-web-text";
  mcp: "mcp";
}

/** A protocol whose content type without a format means proto. */
type EnvelopedName<Name extends Protocol> = Name | `${Name}-${Exclude<FormatName, "proto">}`;
/** The names in {@link wireFormats}. A new format does not compile until `wireFormats` has it. */
export type WireFormatName = Exclude<NamesByProtocol[Protocol], "mcp">;

const connectHeader: readonly Field[] = [["connect-protocol-version", "1"]];
const grpcTimeout = (timeoutMs: number): Field => ["grpc-timeout", `${String(timeoutMs)}m`];
const connectTimeout = (timeoutMs: number): Field => ["connect-timeout-ms", String(timeoutMs)];

/** Every wire format in which a gateway without tools serves unary RPCs. */
// oxfmt-ignore
export const wireFormats: Readonly<Record<WireFormatName, WireFormat>> = { rest: { name: "rest", protocol: "rest", codec: "path", httpVersions: ["1.1", "2"], contentType: undefined, header: [],
    timeout: undefined },
  "connect-json": { name: "connect-json", protocol: "connect", codec: "json", httpVersions: ["1.1", "2"],
    contentType: "application/json", header: connectHeader, timeout: connectTimeout },
  "connect-proto": { name: "connect-proto", protocol: "connect", codec: "proto", httpVersions: ["1.1", "2"],
    contentType: "application/proto", header: connectHeader, timeout: connectTimeout },
  grpc: grpcFormat("grpc", "proto", "application/grpc+proto"),
  "grpc-json": grpcFormat("grpc-json", "json", "application/grpc+json"),
  "grpc-web": grpcWebFormat("grpc-web", "proto", "application/grpc-web+proto"),
  "grpc-web-json": grpcWebFormat("grpc-web-json", "json", "application/grpc-web+json"),
  "grpc-web-text": grpcWebFormat("grpc-web-text", "proto", "application/grpc-web-text+proto"),
};

/** A tool call in the stateless revision, for gateways whose tools are named by {@link toolNameOf}. */
// oxfmt-ignore
const mcpFormat: WireFormat = {
  name: "mcp", protocol: "mcp", codec: "json", httpVersions: ["1.1", "2"], contentType: "application/json", header: [],
  timeout: (timeoutMs) => ["x-server-timeout", String(timeoutMs / 1000)],
};

/** A wire format on one HTTP version, with a name for test titles. */
export type Wire = { readonly name: string; readonly format: WireFormat; readonly httpVersion: HttpVersion };
/** Every wire format on every HTTP version that supports it. */
export const wires: readonly Wire[] = Object.values(wireFormats).flatMap(wiresOfFormat);

export const wiresWithTools: readonly Wire[] = [...wires, ...wiresOfFormat(mcpFormat)];

export const wiresOf = (...names: readonly WireFormatName[]): readonly Wire[] =>
  names.flatMap((name) => wiresOfFormat(wireFormats[name]));

function wiresOfFormat(format: WireFormat): readonly Wire[] {
  return format.httpVersions.map((httpVersion) => ({
    name: `${format.name} over ${httpVersion === "1.1" ? "HTTP/1.1" : "h2c"}`,
    format,
    httpVersion,
  }));
}

/** Returns an empty message in the format's codec, without envelope. */
export const encodeEmpty = (format: WireFormat): Buffer => encodeMessage(format, EmptySchema, {});

/** Encodes any RPC's request message in the format's codec, without envelope. REST is not supported. */
export function encodeMessage<Desc extends DescMessage>(
  format: WireFormat,
  schema: Desc,
  init: MessageInitShape<Desc>,
): Buffer {
  const message = create(schema, init);
  const encoders: Readonly<Record<WireFormat["codec"], () => string | Uint8Array>> = {
    path: () => "",
    proto: () => toBinary(schema, message),
    json: () => toJsonString(schema, message),
  };
  return Buffer.from(encoders[format.codec]());
}

/** Returns a unary request, in an envelope if the format has envelopes. REST is not supported. */
export function rpcRequest(
  format: WireFormat,
  message: Uint8Array,
  header: readonly Field[],
  procedure: string,
): HttpRequest {
  if (format.protocol === "mcp") return toolRequest(message, header, procedure);
  const contentType: readonly Field[] = format.contentType === undefined ? [] : [["content-type", format.contentType]];
  const body = inEnvelope(format, message);
  return { httpMethod: "POST", path: procedure, header: [...contentType, ...format.header, ...header], body };
}

export const exchange = async (address: Address, version: HttpVersion, request: HttpRequest): Promise<HttpResponse> =>
  version === "1.1" ? await exchangeHttp1(address, request) : await exchangeHttp2(address, request);

function inEnvelope(format: WireFormat, message: Uint8Array): Uint8Array {
  if (format.protocol === "connect") return message;
  const envelope = encodeEnvelope(0, message);
  return format.name === "grpc-web-text" ? Buffer.from(envelope.toString("base64")) : envelope;
}

/** The tool's arguments are sent unchanged, because JSON.parse would change large numbers and repeated names. */
function toolRequest(message: Uint8Array, header: readonly Field[], procedure: string): HttpRequest {
  const request = statelessRequest("tools/call", { name: toolNameOf(procedure), arguments: {} }, header);
  const text = String(request.body).replace('"arguments":{}', () => `"arguments":${Buffer.from(message).toString()}`);
  return { ...request, body: Buffer.from(text) };
}

function grpcFormat(name: WireFormatName, codec: FormatName, contentType: string): WireFormat {
  const header: readonly Field[] = [["te", "trailers"]];
  return { name, protocol: "grpc", codec, httpVersions: ["2"], contentType, header, timeout: grpcTimeout };
}

function grpcWebFormat(name: WireFormatName, codec: FormatName, contentType: string): WireFormat {
  const header: readonly Field[] = [["x-grpc-web", "1"]];
  return { name, protocol: "grpc-web", codec, httpVersions: ["1.1", "2"], contentType, header, timeout: grpcTimeout };
}
