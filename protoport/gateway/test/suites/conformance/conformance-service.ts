import { create, createRegistry, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { anyPack, anyUnpack, type Any } from "@bufbuild/protobuf/wkt";
import { ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { setTimeout as delay } from "node:timers/promises";
// oxfmt-ignore
import { BidiStreamRequestSchema, ClientStreamRequestSchema, ConformancePayload_RequestInfoSchema,
  ConformancePayloadSchema, file_connectrpc_conformance_v1_service, HeaderSchema, IdempotentUnaryRequestSchema,
  ServerStreamRequestSchema, UnaryRequestSchema, type BidiStreamRequest, type ClientStreamRequest,
  type ConformancePayload, type ConformancePayload_RequestInfo as RequestInfo, type ConformanceService,
  type Error as ErrorDefinition, type Header, type StreamResponseDefinition, type UnaryResponseDefinition
} from "./gen/connectrpc/conformance/v1/service_pb.ts";

/**
 * The service that the suite calls does what the request requires, and reports what it received.
 *
 * The comments in the suite's service.proto specify its behaviour. `Unimplemented` is missing on purpose.
 */
export const conformanceService: Partial<ServiceImpl<typeof ConformanceService>> = {
  unary: async (request, context) => ({
    payload: await answerOnce(UnaryRequestSchema, [request], request.responseDefinition, context),
  }),
  idempotentUnary: async (request, context) => ({
    payload: await answerOnce(IdempotentUnaryRequestSchema, [request], request.responseDefinition, context),
  }),
  clientStream: async (requests, context) => {
    const received: ClientStreamRequest[] = [];
    for await (const request of requests) received.push(request);
    return { payload: await answerOnce(ClientStreamRequestSchema, received, received[0]?.responseDefinition, context) };
  },
  serverStream: async function* (request, context) {
    const definition = request.responseDefinition;
    if (definition === undefined) return;
    setFields(definition, context);
    let seen: RequestInfo | undefined = requestInfo(context, packAll(ServerStreamRequestSchema, [request]));
    for (const data of definition.responseData) {
      await delay(definition.responseDelayMs);
      yield { payload: payload(data, seen) };
      seen = undefined;
    }
    if (definition.error !== undefined) throw errorOf(definition.error, seen);
  },
  bidiStream: async function* (requests, context) {
    yield* answerBidi(requests, context);
  },
};

async function* answerBidi(
  requests: AsyncIterable<BidiStreamRequest>,
  context: HandlerContext,
): AsyncGenerator<{ payload: ConformancePayload }> {
  let definition: StreamResponseDefinition | undefined;
  let fullDuplex = false;
  let sent = 0;
  let pending: BidiStreamRequest[] = [];
  const next = async (data: Uint8Array): Promise<{ payload: ConformancePayload }> => {
    await delay(definition?.responseDelayMs);
    const seen = pending.length === 0 ? undefined : bidiInfo(context, pending, sent === 0);
    pending = [];
    sent += 1;
    return { payload: payload(data, seen) };
  };
  for await (const request of requests) {
    if (definition === undefined && request.responseDefinition !== undefined) {
      definition = request.responseDefinition;
      fullDuplex = request.fullDuplex;
      setFields(definition, context);
    }
    pending.push(request);
    if (!fullDuplex) continue;
    const data = definition?.responseData[sent];
    // If there are no more responses, the error below is the response.
    if (data === undefined) break;
    yield await next(data);
  }
  for (const data of definition?.responseData.slice(sent) ?? []) yield await next(data);
  if (definition?.error === undefined) return;
  throw errorOf(definition.error, sent === 0 ? bidiInfo(context, pending, true) : undefined);
}

// The first response also reports the header; later ones report only the messages.
function bidiInfo(context: HandlerContext, requests: BidiStreamRequest[], first: boolean): RequestInfo {
  const packed = packAll(BidiStreamRequestSchema, requests);
  return first ? requestInfo(context, packed) : create(ConformancePayload_RequestInfoSchema, { requests: packed });
}

async function answerOnce<Desc extends DescMessage>(
  schema: Desc,
  requests: readonly MessageShape<Desc>[],
  definition: UnaryResponseDefinition | undefined,
  context: HandlerContext,
): Promise<ConformancePayload> {
  const seen = requestInfo(context, packAll(schema, requests));
  if (definition === undefined) return payload(new Uint8Array(), seen);
  setFields(definition, context);
  await delay(definition.responseDelayMs);
  const { response } = definition;
  if (response.case === "error") throw errorOf(response.value, seen);
  return payload(response.case === "responseData" ? response.value : new Uint8Array(), seen);
}

const payload = (data: Uint8Array, seen: RequestInfo | undefined): ConformancePayload =>
  create(ConformancePayloadSchema, { data, ...(seen === undefined ? {} : { requestInfo: seen }) });

function requestInfo(context: HandlerContext, requests: Any[]): RequestInfo {
  const timeoutMs = context.timeoutMs();
  return create(ConformancePayload_RequestInfoSchema, {
    requests,
    requestHeaders: toHeaders(context.requestHeader),
    ...(timeoutMs === undefined ? {} : { timeoutMs: BigInt(timeoutMs) }),
    ...(context.requestMethod === "GET"
      ? { connectGetInfo: { queryParams: toHeaders(new URL(context.url).searchParams) } }
      : {}),
  });
}

function toHeaders(fields: Headers | URLSearchParams): Header[] {
  return [...fields].map(([name, value]) =>
    create(HeaderSchema, { name, value: fields instanceof Headers ? value.split(", ") : [value] }),
  );
}

function setFields(
  definition: { readonly responseHeaders: readonly Header[]; readonly responseTrailers: readonly Header[] },
  context: HandlerContext,
): void {
  for (const { name, value } of definition.responseHeaders)
    value.forEach((text) => context.responseHeader.append(name, text));
  for (const { name, value } of definition.responseTrailers)
    value.forEach((text) => context.responseTrailer.append(name, text));
}

const packAll = <Desc extends DescMessage>(schema: Desc, messages: readonly MessageShape<Desc>[]): Any[] =>
  messages.map((message) => anyPack(schema, message));

const registry = createRegistry(file_connectrpc_conformance_v1_service);

function errorOf(definition: ErrorDefinition, seen: RequestInfo | undefined): ConnectError {
  const error = new ConnectError(definition.message ?? "", definition.code as number);
  for (const any of definition.details) {
    const message = anyUnpack(any, registry);
    const desc = message === undefined ? undefined : registry.getMessage(message.$typeName);
    if (message === undefined || desc === undefined) throw new Error(`${any.typeUrl} is not of the suite`);
    error.details.push({ desc, value: message });
  }
  if (seen !== undefined) error.details.push({ desc: ConformancePayload_RequestInfoSchema, value: seen });
  return error;
}
