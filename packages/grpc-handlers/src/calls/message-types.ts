import { type DescMessage, equals } from "@bufbuild/protobuf";
import {
  createBinaryReader,
  createBinaryWriter,
  createPlainConverter,
  type PlainConverter,
} from "@plantstore/protobuf";
import { withCode } from "@plantstore/http";
import type { AnyDefinition } from "./base-call.ts";
import { sampleMessages } from "./sample-messages.ts";
import { type EncodeMessage, writeMessage } from "./write-response.ts";

/** The message types from ts-proto by their names, such as the namespace of an import of the generated file. */
export type MessageTypes = Readonly<Record<string, unknown>>;

/**
 * Returns the function that writes a method's response type, or `undefined` if neither the definition nor `types` has
 * one. A definition of nice-grpc has the function unless its code is from an old ts-proto with another writer.
 *
 * @throws TypeError if a type in `types` and the definition's `responseSerialize` write sample messages differently
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
  const type = types[name] as { readonly encode?: unknown } | undefined;
  if (typeof type?.encode !== "function") return undefined;
  const encode = type.encode.bind(type) as EncodeMessage;
  const compared = compareSamples(definition, desc, encode);
  if (compared === true) return encode;
  const problem = `messages.${name} writes other bytes than the definition of ${path}`;
  throw withCode(new TypeError(problem, { cause: compared }), "ERR_OPTIONS");
}

/** Returns `true` if a function writes samples of a type like the definition, and otherwise the error, if any. */
function compareSamples(
  { responseDeserialize, responseSerialize }: AnyDefinition,
  desc: DescMessage,
  encode: EncodeMessage,
): unknown {
  const write = createBinaryWriter(desc, undefined);
  const isSame = (bytes: Uint8Array): boolean => {
    const value: unknown = responseDeserialize(Buffer.from(bytes));
    return responseSerialize(value).equals(writeMessage(encode, value, new Uint8Array()));
  };
  try {
    return sampleMessages(desc).every((sample) => isSame(write(sample))) || undefined;
  } catch (error) {
    return error;
  }
}

/**
 * Returns the function that converts a method's usual responses to messages, or `undefined` if the definition's code does
 * not store messages like protobuf-es. The samples show how the code stores each field.
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
