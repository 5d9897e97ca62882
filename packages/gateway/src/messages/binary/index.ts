/**
 * Which message are these bytes, and which bytes are this message? The binary format of protobuf, for the messages of
 * protobuf-es. No sockets.
 *
 * Each type has a quick reader and a quick writer, whose code is made when its first message comes by (`gateway/made-code/`).
 * They know what is as it should be. Anything else, which is whatever is malformed, odd or rare, they leave to
 * protobuf-es: the whole message is read again by `fromBinary`, or written again by `toBinary`, whose verdict and error
 * stand. Where no code may be made at run time, every message goes that way.
 */
export { createBinaryReader } from "./binary-reader.ts";
export { createBinaryWriter } from "./large-bytes.ts";
