/** Converts messages to JSON and binary, and reads descriptors. This package runs on every JavaScript platform. */
export * from "./descriptors/index.ts";
export * from "./call-errors.ts";
export * from "./messages/binary/index.ts";
export * from "./messages/codegen.ts";
export * from "./messages/json/index.ts";
