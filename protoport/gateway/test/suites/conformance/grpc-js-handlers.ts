import { create, type DescMethod, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import type { BinaryWriter } from "@bufbuild/protobuf/wire";
import { ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
// oxfmt-ignore
import { Metadata, type MethodDefinition, type sendUnaryData, type ServerDuplexStream, type ServiceDefinition,
  type StatusObject } from "@grpc/grpc-js";
import { addGrpcJsService } from "../../../../grpc-handlers/src/grpc-js.ts";
import { conformanceService } from "./conformance-service.ts";
import { ConformanceService } from "./gen/connectrpc/conformance/v1/service_pb.ts";

// The conformance service with grpc-js handlers. They read a grpc-js call's metadata and deadline, and respond with its
// methods. The messages are protobuf-es messages.

type Call = ServerDuplexStream<Message, Message> & { readonly request: Message };

interface Context {
  readonly requestHeader: Headers;
  readonly responseHeader: Headers;
  readonly responseTrailer: Headers;
  readonly requestMethod: "POST";
  timeoutMs(): number | undefined;
}

type Implementation = (request: unknown, context: Context) => unknown;

/** Registers the service, with the option `messages` or without it. */
export function addConformanceHandlers(router: ConnectRouter, hasMessages: boolean): void {
  const definition: Record<string, MethodDefinition<Message, Message>> = {};
  const handlers: Record<string, (call: Call, callback: sendUnaryData<Message>) => void> = {};
  for (const method of ConformanceService.methods) {
    definition[method.localName] = toDefinition(method);
    const implementation: unknown = Reflect.get(conformanceService, method.localName);
    if (typeof implementation !== "function") continue;
    const handle: Implementation = (...args) => Reflect.apply(implementation, undefined, args);
    handlers[method.localName] = (call, callback) => void respond(method, handle, call, callback);
  }
  addGrpcJsService(router, definition as ServiceDefinition, handlers as never, {
    descriptors: [ConformanceService],
    messages: hasMessages ? Object.fromEntries(ConformanceService.methods.map(toMessageType)) : {},
  });
}

/** Returns the name and the type of an RPC's responses, like ts-proto. */
function toMessageType({ output }: DescMethod): readonly [string, object] {
  return [output.name, { encode: (message: Message, to: BinaryWriter) => to.raw(toBinary(output, message)) }];
}

function toDefinition({ parent, name, methodKind, input, output }: DescMethod): MethodDefinition<Message, Message> {
  return {
    path: `/${parent.typeName}/${name}`,
    requestStream: methodKind === "client_streaming" || methodKind === "bidi_streaming",
    responseStream: methodKind === "server_streaming" || methodKind === "bidi_streaming",
    requestSerialize: (message) => Buffer.from(toBinary(input, message)),
    requestDeserialize: (bytes) => fromBinary(input, bytes),
    responseSerialize: (message) => Buffer.from(toBinary(output, message)),
    responseDeserialize: (bytes) => fromBinary(output, bytes),
  };
}

async function respond(
  { methodKind, output }: DescMethod,
  handle: Implementation,
  call: Call,
  callback: sendUnaryData<Message>,
): Promise<void> {
  const context = toContext(call);
  const isStream = methodKind === "server_streaming" || methodKind === "bidi_streaming";
  const begin = (): void => call.sendMetadata(toMetadata(context.responseHeader));
  const trailer = (): Metadata => toMetadata(context.responseTrailer);
  try {
    const returned = handle(methodKind === "unary" || methodKind === "server_streaming" ? call.request : call, context);
    if (!isStream) {
      const message = create(output, (await returned) as Record<string, unknown>);
      begin();
      return callback(null, message, trailer());
    }
    for await (const message of returned as AsyncIterable<Record<string, unknown>>) {
      begin();
      call.write(create(output, message));
    }
    begin();
    call.end(trailer());
  } catch (error) {
    begin();
    const failure = toStatus(error, trailer());
    if (isStream) call.emit("error", failure);
    else callback(failure);
  }
}

function toContext(call: Call): Context {
  const requestHeader = new Headers();
  for (const [name, values] of Object.entries(call.metadata.toHttp2Headers())) {
    for (const value of [values].flat()) requestHeader.append(name, String(value));
  }
  return {
    requestHeader,
    responseHeader: new Headers(),
    responseTrailer: new Headers(),
    requestMethod: "POST",
    timeoutMs: () => (call.getDeadline() === Infinity ? undefined : Number(call.getDeadline()) - Date.now()),
  };
}

function toMetadata(headers: Headers): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of headers) {
    for (const one of value.split(", ")) metadata.add(name, name.endsWith("-bin") ? Buffer.from(one, "base64") : one);
  }
  return metadata;
}

/** Returns an error as a grpc-js status. */
function toStatus(thrown: unknown, metadata: Metadata): StatusObject {
  const error = ConnectError.from(thrown);
  const fields = new Headers();
  setTrailerStatus(fields, error);
  const details = fields.get("grpc-status-details-bin");
  if (details !== null) metadata.set("grpc-status-details-bin", Buffer.from(details, "base64"));
  const code: number = error.code;
  return { code, details: error.rawMessage, metadata };
}
