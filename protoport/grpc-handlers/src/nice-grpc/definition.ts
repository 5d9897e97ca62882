import type { MethodDefinition, ServiceDefinition } from "@grpc/grpc-js";
import type { BinaryWriter } from "@bufbuild/protobuf/wire";

/** A ts-proto message type. */
interface TsProtoType {
  // oxlint-disable-next-line typescript/no-explicit-any -- a definition's messages have any type.
  encode(message: any, writer?: any): { finish(): Uint8Array };
  decode(bytes: Uint8Array): unknown;
  // oxlint-disable-next-line typescript/no-explicit-any -- as above.
  fromPartial?(message: any): unknown;
}

/** A {@link GenericDefinition}'s method. */
interface GenericMethod {
  readonly name: string;
  readonly requestType: TsProtoType;
  readonly requestStream: boolean;
  readonly responseType: TsProtoType;
  readonly responseStream: boolean;
}

/** A service as ts-proto describes it with `outputServices=nice-grpc,outputServices=generic-definitions`. */
export interface GenericDefinition {
  readonly fullName: string;
  readonly methods: Readonly<Record<string, GenericMethod>>;
}

/** Converts a nice-grpc definition to a grpc-js definition. The keys are the handler names. */
export function toGrpcJsDefinition(definition: GenericDefinition | ServiceDefinition): ServiceDefinition {
  if (!isGeneric(definition)) return definition;
  const { fullName, methods } = definition;
  return Object.fromEntries(Object.entries(methods).map(([key, method]) => [key, toMethod(fullName, method)]));
}

function isGeneric(definition: GenericDefinition | ServiceDefinition): definition is GenericDefinition {
  return typeof definition["fullName"] === "string";
}

/** A method definition with a function that appends a response to a writer. */
interface EncodedMethod extends MethodDefinition<unknown, unknown> {
  readonly responseEncode: (message: unknown, writer: BinaryWriter) => { finish(): Uint8Array };
}

function toMethod(fullName: string, method: GenericMethod): EncodedMethod {
  const { name, requestType, requestStream, responseType, responseStream } = method;
  // nice-grpc handlers return only the fields that are set.
  const complete = (message: unknown): unknown => responseType.fromPartial?.(message) ?? message;
  return {
    path: `/${fullName}/${name}`,
    requestStream,
    responseStream,
    requestSerialize: (message) => Buffer.from(requestType.encode(message).finish()),
    requestDeserialize: (bytes) => requestType.decode(bytes),
    responseSerialize: (message) => Buffer.from(responseType.encode(complete(message)).finish()),
    responseEncode: (message, writer) => responseType.encode(complete(message), writer),
    responseDeserialize: (bytes) => responseType.decode(bytes),
  };
}
