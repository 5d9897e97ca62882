import { create, mergeFromBinary } from "@bufbuild/protobuf";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import {
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  MethodDescriptorProtoSchema,
  ServiceDescriptorProtoSchema,
} from "@bufbuild/protobuf/wkt";
import { joinNames } from "./validate-files.ts";

/** Number of bytes parsed in one step, unless a field is larger. Parsing 64 KiB takes about three milliseconds. */
const pieceBytes = 64 * 1024;

/** Maximum message nesting depth in a file. With the enclosing set, the depth is 100, which is protobuf's maximum. */
const recursionLimit = 99;

const filesNumber = FileDescriptorSetSchema.field.file.number;

/** The number of the field that contains a file's comments. This field can be large, and is then parsed in pieces. */
const commentsNumber = FileDescriptorProtoSchema.field.sourceCodeInfo.number;

/**
 * Parses the files in a binary google.protobuf.FileDescriptorSet. Yields the number of bytes that each step has parsed.
 * A message may be parsed in pieces, because protobuf concatenates lists and merges the other fields.
 *
 * @throws Error if the bytes are not a FileDescriptorSet
 */
export function* parseFiles(set: Uint8Array): Generator<number, readonly FileDescriptorProto[]> {
  const files: FileDescriptorProto[] = [];
  for (const { number, content } of fieldsOf(set)) {
    if (number !== filesNumber || content === undefined) continue;
    const file = create(FileDescriptorProtoSchema);
    for (const piece of piecesOf(content, commentsNumber)) {
      mergeFromBinary(FileDescriptorProtoSchema, file, piece, { recursionLimit });
      yield piece.byteLength;
    }
    files.push(file);
  }
  return files;
}

/** A field in an encoded message. */
export interface EncodedField {
  readonly number: number;
  /** The field starts with its tag at the offset `start`, and ends before the offset `end`. */
  readonly start: number;
  readonly end: number;
  /** The field's content, if the field is length-delimited. */
  readonly content: Uint8Array | undefined;
}

/** Yields the fields of an encoded message. @throws Error if the message is malformed */
export function* fieldsOf(message: Uint8Array): Generator<EncodedField> {
  const reader = new BinaryReader(message);
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const [number, wireType] = reader.tag();
    const content = wireType === WireType.LengthDelimited ? reader.bytes() : undefined;
    if (content === undefined) reader.skip(wireType, number);
    yield { number, start, end: reader.pos, content };
  }
}

/**
 * Splits an encoded message between its fields. A large message in the field `splitNumber`, such as the comments, is
 * split into its own fields. Deeper messages are not split, to limit the work.
 */
function* piecesOf(file: Uint8Array, splitNumber?: number): Generator<Uint8Array> {
  let start = 0;
  for (const field of fieldsOf(file)) {
    const isLong = field.number === splitNumber && (field.content?.byteLength ?? 0) > pieceBytes;
    if (field.content !== undefined && isLong) {
      yield file.subarray(start, field.start);
      for (const piece of piecesOf(field.content)) {
        yield new BinaryWriter().tag(field.number, WireType.LengthDelimited).bytes(piece).finish();
      }
      start = field.end;
    } else if (field.end - start >= pieceBytes) {
      yield file.subarray(start, field.end);
      start = field.end;
    }
  }
  yield file.subarray(start);
}

/** The full names of the services and RPCs that a descriptor set declares. */
export interface DeclaredNames {
  readonly services: readonly string[];
  /** The RPCs' full names, as `package.Service.Method`. */
  readonly rpcs: readonly string[];
}

/**
 * Returns the names in a binary google.protobuf.FileDescriptorSet, even of services that are hidden or omitted.
 *
 * @throws Error if the bytes are not protobuf
 */
export function declaredNames(set: Uint8Array): DeclaredNames {
  const services: string[] = [];
  const rpcs: string[] = [];
  for (const file of contentsOf(set, FileDescriptorSetSchema.field.file)) {
    const scope = nameIn(file, FileDescriptorProtoSchema.field.package);
    for (const service of contentsOf(file, FileDescriptorProtoSchema.field.service)) {
      const typeName = joinNames(scope, nameIn(service, ServiceDescriptorProtoSchema.field.name));
      services.push(typeName);
      for (const method of contentsOf(service, ServiceDescriptorProtoSchema.field.method))
        rpcs.push(joinNames(typeName, nameIn(method, MethodDescriptorProtoSchema.field.name)));
    }
  }
  return { services, rpcs };
}

/** Returns the encoded values of a message's length-delimited field. */
function contentsOf(message: Uint8Array, { number }: { readonly number: number }): readonly Uint8Array[] {
  return [...fieldsOf(message)].flatMap((field) =>
    field.number === number && field.content !== undefined ? [field.content] : [],
  );
}

function nameIn(message: Uint8Array, field: { readonly number: number }): string {
  return new TextDecoder().decode(contentsOf(message, field).at(-1));
}
