import { create, mergeFromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

/** Bytes that are parsed in one step, if no field is larger. 64 KiB: about three milliseconds of work. */
const pieceBytes = 64 * 1024;

/** How deep messages may be nested in a file. 99, so that a set has at most 100 levels, as in protobuf's readers. */
const recursionLimit = 99;

/** The field that contains a set's files. */
const filesNumber = FileDescriptorSetSchema.field.file.number;

/** The field that contains a file's comments. No other field is large without being a definition. */
const commentsNumber = FileDescriptorProtoSchema.field.sourceCodeInfo.number;

/**
 * Parses the files in a binary google.protobuf.FileDescriptorSet. Yields the bytes that each step has parsed.
 *
 * A message may be parsed in pieces, because protobuf concatenates their lists and merges their other fields.
 *
 * @throws Error if the bytes are not such a set
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
  /** The offsets of its tag and of the byte after it. */
  readonly start: number;
  readonly end: number;
  /** Its bytes, if it is length-delimited. */
  readonly content: Uint8Array | undefined;
}

/** Yields the fields of an encoded message. @throws Error if it is malformed */
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
 * Splits an encoded message between its fields.
 *
 * @param splitNumber - a field whose message is split between its fields too. For example, the comments are split
 * between locations. Messages below it are not split, so that nesting does not multiply the work
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
