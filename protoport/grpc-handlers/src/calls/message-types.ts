import { create, type DescField, type DescMessage, equals, type Message, ScalarType } from "@bufbuild/protobuf";
import { reflect, type ReflectMessage } from "@bufbuild/protobuf/reflect";
import { withCode } from "@protoport/gateway/errors";
import {
  createBinaryReader,
  createBinaryWriter,
  createPlainConverter,
  type PlainConverter,
} from "@protoport/gateway/messages";
import type { AnyDefinition } from "./base-call.ts";
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
    return samplesOf(desc).every((sample) => isSame(write(sample))) || undefined;
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
  return [new Uint8Array(), ...samplesOf(desc).map(write)].every(isSame) ? convert : undefined;
}

/** Maximum nesting depth of a sample, because a message type may contain itself. */
const maxDepth = 3;

/** Returns messages with a value in every field. Each message has another member of each oneof. */
function samplesOf(desc: DescMessage): readonly Message[] {
  const count = Math.max(1, ...[...reachable(desc)].flatMap(({ oneofs }) => oneofs.map(({ fields }) => fields.length)));
  return Array.from({ length: count }, (_, member) => sampleOf(desc, member, 0));
}

function reachable(desc: DescMessage, found = new Set<DescMessage>()): ReadonlySet<DescMessage> {
  if (found.has(desc)) return found;
  found.add(desc);
  for (const { message } of desc.fields) if (message !== undefined) reachable(message, found);
  return found;
}

function sampleOf(desc: DescMessage, member: number, depth: number): Message {
  const sample = reflect(desc, create(desc));
  for (const field of desc.fields) {
    const { oneof } = field;
    const isChosen = oneof === undefined || oneof.fields.indexOf(field) === member % oneof.fields.length;
    const isTooDeep = field.message !== undefined && depth === maxDepth;
    if (isChosen && !isTooDeep) setSampleField(sample, field, member, depth);
  }
  return sample.message;
}

function setSampleField(sample: ReflectMessage, field: DescField, member: number, depth: number): void {
  const value = (): unknown => {
    if (field.message !== undefined) return reflect(field.message, sampleOf(field.message, member, depth + 1));
    if (field.enum !== undefined) return field.enum.values.at(-1)?.number ?? 0;
    return scalarSample(field.scalar);
  };
  if (field.fieldKind === "list") for (const item of [value(), value()]) sample.get(field).add(item);
  else if (field.fieldKind === "map") sample.get(field).set(scalarSample(field.mapKey), value());
  else sample.set(field, value());
}

function scalarSample(scalar: ScalarType): unknown {
  switch (scalar) {
    case ScalarType.STRING:
      return "é5";
    case ScalarType.BOOL:
      return true;
    case ScalarType.BYTES:
      return new Uint8Array([0, 255]);
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return 300n;
    default:
      return 300;
  }
}
