import type { DescMessage, JsonWriteOptions } from "@bufbuild/protobuf";

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
  readonly options: Partial<JsonWriteOptions>;
  of(desc: DescMessage): MessageWriter;
}
