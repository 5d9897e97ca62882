import { create, mergeFromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

/** Number of bytes parsed in one step, unless a field is larger. Parsing 64 KiB takes about three milliseconds. */
const pieceBytes = 64 * 1024;

/** Maximum message nesting depth in a file. With the enclosing set, the depth is 100, which is protobuf's maximum. */
const recursionLimit = 99;

/** The number of the field that contains a set's files. */
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
