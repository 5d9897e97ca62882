import { create, createRegistry, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { type Any, AnySchema, anyUnpack } from "@bufbuild/protobuf/wkt";
import { type CallOptions, ConnectError, createClient } from "@connectrpc/connect";
import { setTimeout as delay } from "node:timers/promises";
import { createGrpcTransport, type GrpcTransport } from "../../../../proxy/src/client/index.ts";
// oxfmt-ignore
import { type ClientCompatRequest, ClientCompatRequestSchema, type ClientCompatResponse, ClientCompatResponseSchema,
  type ClientResponseResult, ClientResponseResultSchema } from "./gen/connectrpc/conformance/v1/client_compat_pb.ts";
import { type Code as SuiteCode, Compression, StreamType } from "./gen/connectrpc/conformance/v1/config_pb.ts";
// oxfmt-ignore
import { type ConformancePayload, ConformancePayloadSchema, ConformanceService, ErrorSchema,
  file_connectrpc_conformance_v1_service, type Header, HeaderSchema
} from "./gen/connectrpc/conformance/v1/service_pb.ts";

// The client under test, as the suite starts it. Requests on stdin describe the calls and their server, and responses
// on stdout describe the results. Four bytes with the length precede each message.

const registry = createRegistry(file_connectrpc_conformance_v1_service);
const transports = new Map<string, GrpcTransport>();
const endOf = (read: Buffer): number => (read.byteLength < 4 ? Number.POSITIVE_INFINITY : 4 + read.readUInt32BE(0));

async function answer(request: ClientCompatRequest): Promise<void> {
  const { testName } = request;
  let result: ClientCompatResponse["result"];
  try {
    result = { case: "response", value: await call(request) };
  } catch (error) {
    const $typeName = "connectrpc.conformance.v1.ClientErrorResult";
    result = { case: "error", value: { $typeName, message: String(error) } };
  }
  const message = toBinary(ClientCompatResponseSchema, create(ClientCompatResponseSchema, { testName, result }));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(message.byteLength);
  process.stdout.write(Buffer.concat([length, message]));
}

async function call(request: ClientCompatRequest): Promise<ClientResponseResult> {
  const result = create(ClientResponseResultSchema);
  const controller = new AbortController();
  const options: CallOptions = {
    signal: controller.signal,
    ...(request.timeoutMs !== undefined && { timeoutMs: request.timeoutMs }),
    headers: headersOf(request),
    onHeader: (header) => void (result.responseHeaders = toHeaders(header)),
    onTrailer: (trailer) => void (result.responseTrailers = toHeaders(trailer)),
  };
  try {
    await makeCall(request, options, controller, result);
  } catch (error) {
    const { code, rawMessage, details, metadata } = ConnectError.from(error);
    if (result.responseHeaders.length === 0) result.responseHeaders = toHeaders(metadata);
    if (result.responseTrailers.length === 0) result.responseTrailers = toHeaders(metadata);
    const packed = details.map((detail) => {
      if (!("type" in detail)) throw new Error("a detail was not read from the wire");
      return create(AnySchema, { typeUrl: `type.googleapis.com/${detail.type}`, value: detail.value });
    });
    result.error = create(ErrorSchema, { code: code as unknown as SuiteCode, message: rawMessage, details: packed });
  }
  return result;
}

async function makeCall(
  request: ClientCompatRequest,
  options: CallOptions,
  controller: AbortController,
  result: ClientResponseResult,
): Promise<void> {
  const client = createClient(ConformanceService, transportTo(request));
  const inTurn = request.streamType === StreamType.FULL_DUPLEX_BIDI_STREAM ? new Turns() : undefined;
  const messages = messagesOf(request, controller, inTurn);
  const first = async (): Promise<never> => (await messages.next()).value as never;
  const take = async (answers: AsyncIterable<{ readonly payload?: ConformancePayload | undefined }>): Promise<void> => {
    const { cancelTiming } = request.cancel ?? {};
    for await (const { payload } of answers) {
      result.payloads.push(payload ?? create(ConformancePayloadSchema));
      inTurn?.next();
      if (cancelTiming?.case === "afterNumResponses" && result.payloads.length === cancelTiming.value)
        controller.abort();
    }
  };
  const once = async (answered: Promise<{ readonly payload?: ConformancePayload | undefined }>): Promise<void> => {
    result.payloads.push((await answered).payload ?? create(ConformancePayloadSchema));
  };
  switch (request.method) {
    case "Unary":
    case "IdempotentUnary":
    case "Unimplemented": {
      const message = await first();
      abortLater(request, controller);
      if (request.method === "Unary") return await once(client.unary(message, options));
      if (request.method === "Unimplemented") return void (await client.unimplemented(message, options));
      return await once(client.idempotentUnary(message, options));
    }
    case "ServerStream": {
      const message = await first();
      abortLater(request, controller);
      return await take(client.serverStream(message, options));
    }
    case "ClientStream":
      return await once(client.clientStream(messages as AsyncIterable<never>, options));
    case "BidiStream":
      return await take(client.bidiStream(messages as AsyncIterable<never>, options));
    default:
      throw new Error(`there is no ${request.method}`);
  }
}

/** Lets a full-duplex stream send its next message when the response to the previous one has arrived. */
class Turns {
  #turns = 0;
  #resume: (() => void) | undefined;

  next(): void {
    this.#turns++;
    this.#resume?.();
  }

  async wait(): Promise<void> {
    if (this.#turns === 0)
      await new Promise<void>((resolve) => {
        this.#resume = resolve;
      });
    this.#turns--;
  }
}

async function* messagesOf(
  request: ClientCompatRequest,
  controller: AbortController,
  inTurn: Turns | undefined,
): AsyncGenerator<Message> {
  for (const [at, message] of request.requestMessages.entries()) {
    if (at > 0) await inTurn?.wait();
    await delay(request.requestDelayMs);
    yield unpack(message);
  }
  await inTurn?.wait();
  if (request.cancel?.cancelTiming.case === "beforeCloseSend") controller.abort();
  else abortLater(request, controller);
}

function abortLater({ cancel }: ClientCompatRequest, controller: AbortController): void {
  if (cancel?.cancelTiming.case === "afterCloseSendMs") setTimeout(() => controller.abort(), cancel.cancelTiming.value);
}

function transportTo(request: ClientCompatRequest): GrpcTransport {
  const { host, port, serverTlsCert, clientTlsCreds, compression, messageReceiveLimit } = request;
  const isTls = serverTlsCert.byteLength > 0;
  const key = [port, isTls, clientTlsCreds !== undefined, compression, messageReceiveLimit].join(" ");
  let transport = transports.get(key);
  if (transport === undefined) {
    transport = createGrpcTransport({
      baseUrl: `${isTls ? "https" : "http"}://${host}:${port}`,
      ...(isTls && {
        tls: {
          ca: Buffer.from(serverTlsCert),
          ...(clientTlsCreds && { cert: Buffer.from(clientTlsCreds.cert), key: Buffer.from(clientTlsCreds.key) }),
        },
      }),
      ...sendCompressionOf(compression),
      compressMinBytes: 0,
      ...(messageReceiveLimit > 0 && { readMaxBytes: messageReceiveLimit }),
    });
    transports.set(key, transport);
  }
  return transport;
}

function sendCompressionOf(compression: Compression): { readonly sendCompression?: "gzip" | "br" | "zstd" } {
  if (compression === Compression.GZIP) return { sendCompression: "gzip" };
  if (compression === Compression.BR) return { sendCompression: "br" };
  return compression === Compression.ZSTD ? { sendCompression: "zstd" } : {};
}

function unpack(any: Any): Message {
  const message = anyUnpack(any, registry);
  if (message === undefined) throw new Error(`${any.typeUrl} is not of the suite`);
  return message;
}

function headersOf({ requestHeaders }: ClientCompatRequest): Headers {
  const headers = new Headers();
  for (const { name, value } of requestHeaders) for (const text of value) headers.append(name, text);
  return headers;
}

const toHeaders = (headers: Headers): Header[] =>
  [...headers].map(([name, value]) => create(HeaderSchema, { name, value: value.split(", ") }));

let bytes = Buffer.alloc(0);
for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
  bytes = Buffer.concat([bytes, chunk]);
  for (let end = endOf(bytes); end <= bytes.byteLength; end = endOf(bytes)) {
    void answer(fromBinary(ClientCompatRequestSchema, bytes.subarray(4, end)));
    bytes = bytes.subarray(end);
  }
}
