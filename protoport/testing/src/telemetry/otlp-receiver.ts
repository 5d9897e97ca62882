import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import type { Certificate } from "../http/certificate.ts";
import { startOnLoopback } from "../http/listen-on-loopback.ts";

/** A received span, decoded by OTLP's field numbers. */
export interface ReceivedSpan {
  traceId: string;
  spanId: string;
  parentSpanId: string;
  traceState: string;
  name: string;
  kind: number;
  startNs: bigint;
  endNs: bigint;
  attributes: Record<string, unknown>;
  links: string[];
  statusCode: number;
}

/** A test collector for OTLP over HTTP, in protobuf or JSON. Reads only traces. */
export interface OtlpReceiver extends AsyncDisposable {
  readonly url: string;
  readonly spans: ReceivedSpan[];
  readonly resources: Record<string, unknown>[];
  readonly metrics: Set<string>;
  readonly requests: IncomingMessage[];
  /** Sends the response to a request. The default response is 200. */
  respond: (response: ServerResponse) => void;
}

/** Starts a collector on a free port. @param certificate - enables TLS */
export async function startOtlpReceiver(certificate?: Certificate): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const resources: Record<string, unknown>[] = [];
  const metrics = new Set<string>();
  const requests: IncomingMessage[] = [];
  const listener: RequestListener = (request, response) => {
    void buffer(request).then((sent) => {
      requests.push(request);
      const body = request.headers["content-encoding"] === "gzip" ? gunzipSync(sent) : sent;
      const isJson = request.headers["content-type"] === "application/json";
      if (isJson) spans.push(...readJsonTraces(String(body)));
      else if (request.url === "/v1/traces") readTraces(body, spans, resources);
      if (request.url === "/v1/metrics") readMetrics(body, metrics);
      receiver.respond(response);
    });
  };
  const server = certificate === undefined ? createServer(listener) : createTlsServer(certificate, listener);
  const { baseUrl, [Symbol.asyncDispose]: close } = await startOnLoopback(server);
  // oxfmt-ignore
  const receiver: OtlpReceiver = {
    url: certificate === undefined ? baseUrl : baseUrl.replace("http:", "https:"), spans, resources, metrics, requests,
    respond: (response) => void response.end(), [Symbol.asyncDispose]: close,
  };
  return receiver;
}

/** Returns a message's fields in order. A length-delimited field is bytes, and any other field is a number. */
function fieldsOf(bytes: Uint8Array): { no: number; value: Uint8Array | bigint }[] {
  const reader = new BinaryReader(bytes);
  const fields: { no: number; value: Uint8Array | bigint }[] = [];
  while (reader.pos < reader.len) {
    const [no, type] = reader.tag();
    if (type === WireType.LengthDelimited) fields.push({ no, value: reader.bytes() });
    else if (type === WireType.Bit64) fields.push({ no, value: BigInt(reader.fixed64()) });
    else if (type === WireType.Bit32) fields.push({ no, value: BigInt(reader.fixed32()) });
    else fields.push({ no, value: BigInt(reader.uint64()) });
  }
  return fields;
}

const all = (bytes: Uint8Array, no: number): Uint8Array[] =>
  fieldsOf(bytes).flatMap((field) => (field.no === no && typeof field.value !== "bigint" ? [field.value] : []));

function numberAt(bytes: Uint8Array, no: number): bigint {
  const found = fieldsOf(bytes).find((field) => field.no === no)?.value;
  return typeof found === "bigint" ? found : 0n;
}

const hexAt = (bytes: Uint8Array, no: number): string => Buffer.from(all(bytes, no)[0] ?? []).toString("hex");
const textAt = (bytes: Uint8Array, no: number): string => Buffer.from(all(bytes, no)[0] ?? []).toString();

/** KeyValue has the fields key 1 and value 2. AnyValue has the fields string 1, bool 2 and int 3. */
const attributesAt = (bytes: Uint8Array, no: number): Record<string, unknown> =>
  Object.fromEntries(
    all(bytes, no).map((pair) => {
      const [field] = fieldsOf(all(pair, 2)[0] ?? new Uint8Array(0));
      const value =
        field === undefined || typeof field.value === "bigint"
          ? Number(field?.value)
          : String(Buffer.from(field.value));
      return [textAt(pair, 1), value];
    }),
  );

function readTraces(body: Uint8Array, spans: ReceivedSpan[], resources: Record<string, unknown>[]): void {
  for (const resourceSpans of all(body, 1)) {
    for (const resource of all(resourceSpans, 1)) resources.push(attributesAt(resource, 1));
    for (const scopeSpans of all(resourceSpans, 2)) spans.push(...all(scopeSpans, 2).map(readSpan));
  }
}

interface JsonTraces {
  readonly resourceSpans: readonly { readonly scopeSpans: readonly { readonly spans: readonly ReceivedSpan[] }[] }[];
}

/** Returns the JSON spans, whose members have the field names. */
function readJsonTraces(body: string): ReceivedSpan[] {
  const { resourceSpans }: JsonTraces = JSON.parse(body);
  return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans));
}

function readSpan(bytes: Uint8Array): ReceivedSpan {
  // oxfmt-ignore
  return {
    traceId: hexAt(bytes, 1), spanId: hexAt(bytes, 2), traceState: textAt(bytes, 3), parentSpanId: hexAt(bytes, 4),
    name: textAt(bytes, 5), kind: Number(numberAt(bytes, 6)), startNs: numberAt(bytes, 7), endNs: numberAt(bytes, 8),
    attributes: attributesAt(bytes, 9), links: all(bytes, 13).map((link) => `${hexAt(link, 1)}-${hexAt(link, 2)}`),
    statusCode: Number(numberAt(all(bytes, 15)[0] ?? new Uint8Array(0), 3)),
  };
}

function readMetrics(body: Uint8Array, names: Set<string>): void {
  for (const resourceMetrics of all(body, 1)) {
    for (const scope of all(resourceMetrics, 2)) for (const metric of all(scope, 2)) names.add(textAt(metric, 1));
  }
}
