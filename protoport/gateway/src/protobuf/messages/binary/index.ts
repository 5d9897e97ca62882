/**
 * Reads and writes protobuf-es messages in protobuf's binary format.
 *
 * Each type has a fast reader and a fast writer, generated at the type's first message (`codegen.ts`). The fast readers
 * and writers handle valid, common messages, and bail out for malformed or unusual ones. After a bail-out, `fromBinary`
 * or `toBinary` processes the complete message again, and determines the result or error. Where code generation is not
 * allowed, protobuf-es handles every message.
 */
export { createBinaryReader } from "./binary-reader.ts";
export { createBinaryWriter } from "./binary-writer.ts";
export { createPlainConverter, type PlainConverter } from "./plain-objects.ts";
