import type { DescMessage, JsonValue, JsonWriteOptions } from "@bufbuild/protobuf";

/** How messages are written: by Connect's options, and by those of one service. */
export interface JsonStyle extends Partial<JsonWriteOptions> {
  /** Writes 64-bit integers as numbers, except those that a double does not have exactly. */
  readonly int64Numbers?: boolean;
  /** Writes names of enum values without their prefix. */
  readonly shortEnumNames?: boolean;
}

/** Writes messages of one type. */
export interface MessageWriter {
  /** @throws Error when the value is no message of the type, or cannot be written */
  write(message: unknown): string;
  /** Writes the message as a google.protobuf.Any of this type. */
  writeAny(typeUrl: string, message: unknown): string;
}

/**
 * The writers of message types, under the same options; each is compiled on first use, because a message type may
 * contain itself, and because nearly all of what is defined is never written.
 */
export interface MessageWriters {
  readonly options: JsonStyle;
  of(desc: DescMessage): MessageWriter;
}

/** Makes what `JSON.stringify` writes, for values of a message: the quick way of a {@link MessageWriter}. */
export interface ToJson {
  /** @throws unsure, or anything else, where the exact writer has to decide */
  toJson(value: unknown): JsonValue;
}
