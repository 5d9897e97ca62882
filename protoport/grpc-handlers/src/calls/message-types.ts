import { type DescMessage, equals } from "@bufbuild/protobuf";
import {
  createBinaryReader,
  createBinaryWriter,
  createPlainConverter,
  type PlainConverter,
} from "@protoport/gateway/messages";
import { withCode } from "@protoport/gateway/errors";
import type { AnyDefinition } from "./base-call.ts";
import { sampleMessages } from "./sample-messages.ts";
import { createResponseWriter, type EncodeMessage } from "./write-response.ts";

/** Message types by the names that ts-proto gives them: the namespace of a file that ts-proto has generated. */
export type MessageTypes = Readonly<Record<string, unknown>>;

/**
 * Returns the function that writes a method's response type, or `undefined` if neither the definition nor `types` has
 * one. nice-grpc's definitions have one, except those of an old ts-proto, whose writer has other methods.
 *
 * @throws TypeError if a type in `types` writes a sample message differently from the definition's `responseSerialize`
 */
export function findEncode(
  definition: AnyDefinition & { readonly responseEncode?: EncodeMessage },
  desc: DescMessage,
  types: MessageTypes,
): EncodeMessage | undefined {
  const { responseEncode, path } = definition;
  if (responseEncode !== undefined && compareSamples(definition, desc, responseEncode) === true) return responseEncode;
  // The name from ts-proto for a nested type has underscores.
  const name = desc.typeName.slice(desc.file.proto.package.length).replace(/^\./, "").replaceAll(".", "_");
  const type = types[name];
  if (!canEncode(type)) return undefined;
  const encode: EncodeMessage = (message, writer) => type.encode(message, writer);
  const compared = compareSamples(definition, desc, encode);
  if (compared === true) return encode;
  const problem = `messages.${name} writes other bytes than the definition of ${path}: pass the file with both`;
  throw withCode(new TypeError(problem, { cause: compared }), "ERR_OPTIONS");
}

function canEncode(type: unknown): type is { readonly encode: EncodeMessage } {
  return typeof type === "object" && type !== null && "encode" in type && typeof type.encode === "function";
}

/** Returns `true` if a function writes samples of a type like the definition, and otherwise the error, if any. */
function compareSamples(definition: AnyDefinition, desc: DescMessage, encode: EncodeMessage): unknown {
  const write = createBinaryWriter(desc, undefined);
  const writeResponse = createResponseWriter(definition, encode);
  const isSame = (bytes: Uint8Array): boolean => {
    const value: unknown = definition.responseDeserialize(Buffer.from(bytes));
    return definition.responseSerialize(value).equals(writeResponse(value).bytes);
  };
  try {
    return sampleMessages(desc).every((sample) => isSame(write(sample))) || undefined;
  } catch (error) {
    return error;
  }
}

/**
 * Returns the function that converts a method's responses to messages, or `undefined` if the definition's code stores a
 * field of a sample message differently from protobuf-es.
 *
 * @param encode - the function of {@link findEncode}
 */
export function findConverter(
  { responseDeserialize }: AnyDefinition,
  desc: DescMessage,
  encode: EncodeMessage | undefined,
): PlainConverter | undefined {
  const convert = encode && createPlainConverter(desc);
  if (convert === undefined) return undefined;
  const write = createBinaryWriter(desc, undefined);
  const read = createBinaryReader(desc, undefined);
  const isSame = (bytes: Uint8Array): boolean => {
    const converted = convert(responseDeserialize(Buffer.from(bytes)));
    return converted !== undefined && equals(desc, converted, read(bytes));
  };
  return [new Uint8Array(), ...sampleMessages(desc).map(write)].every(isSame) ? convert : undefined;
}
