/**
 * Protobuf's binary format, for protobuf-es messages.
 *
 * Each type has a fast reader and a fast writer, generated at its first message (`codegen/`). They handle valid, common
 * messages. For anything malformed, unusual or rare they bail out. Then `fromBinary` reads the whole message again, or
 * `toBinary` writes it again, and determines the result or error. Where code generation is not allowed, protobuf-es
 * handles every message.
 */
export { createBinaryReader } from "./binary-reader.ts";
export { createBinaryWriter } from "./large-bytes.ts";
