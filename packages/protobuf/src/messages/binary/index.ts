/**
 * The binary format of protobuf, for the messages of protobuf-es.
 *
 * Each type has a fast reader and a fast writer, generated at its first message (`codegen/`). They handle valid, common
 * messages. For anything malformed, unusual or rare they bail out. `fromBinary` reads the whole message again, or
 * `toBinary` writes it again, and its result or error is used. Where code generation is not allowed, protobuf-es
 * handles every message.
 */
export { createBinaryReader } from "./binary-reader.ts";
export { createBinaryWriter } from "./large-bytes.ts";
