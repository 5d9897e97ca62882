import { create, mergeFromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

/** Bytes that are parsed in one step, if no field is larger. 64 KiB: about three milliseconds of work. */
const pieceBytes = 64 * 1024;

/** The deepest nesting of messages in a file. 99: 100 in a set, as in protobuf's readers. */
const recursionLimit = 99;

/** The number of the repeated field that contains a set's files. */
const filesNumber = FileDescriptorSetSchema.field.file.number;

/** The number of the field with comments, the only field of a file that is large without being a definition. */
const commentsNumber = FileDescriptorProtoSchema.field.sourceCodeInfo.number;

/**
 * Parses the files of a binary google.protobuf.FileDescriptorSet. Yields the bytes that each step has parsed.
 *
 * A message may be parsed in pieces, because protobuf concatenates the lists of pieces and merges their other fields.
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

/** A field of an encoded message. */
interface EncodedField {
  readonly number: number;
  /** The offsets of its tag and of the byte after it. */
  readonly start: number;
  readonly end: number;
  /** Its bytes, if it is length-delimited. */
  readonly content: Uint8Array | undefined;
}

function* fieldsOf(message: Uint8Array): Generator<EncodedField> {
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
 * @param splitNumber - the number of a field whose message is split between its fields too, such as that of the
 * comments, which is split between locations. Messages below it are not split, so that nesting does not multiply the
 * work
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
