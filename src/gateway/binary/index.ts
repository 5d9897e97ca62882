/**
 * Which message are these bytes, and which bytes are this message? The binary format of protobuf, for the messages of
 * protobuf-es. No sockets.
 *
 * Each type has a quick reader, whose code is made when the first message of the type comes by (`made-code.ts`). It knows
 * what is written as it should be. Anything else, which is whatever is malformed, odd or rare, it leaves to protobuf-es:
 * the whole message is read again by `fromBinary`, whose verdict and error stand. Where no code may be made at run time,
 * every message goes that way.
 */
export { createBinaryReader } from "./binary-reader.ts";
export { createBinaryWriter } from "./large-bytes.ts";
