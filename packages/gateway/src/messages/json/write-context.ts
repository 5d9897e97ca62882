import type { DescMessage, JsonValue, JsonWriteOptions } from "@bufbuild/protobuf";
import type { CodegenOptions } from "../codegen/index.ts";

/** How messages are written: by Connect's options, and by those of one service. */
export interface JsonStyle extends Partial<JsonWriteOptions>, CodegenOptions {
  /** Writes 64-bit integers as numbers, except those that a double does not have exactly. */
  readonly int64Numbers?: boolean;
}

/** Makes what `JSON.stringify` writes, for values of one type. */
export interface ToJson {
  /** @throws Error when the value is not of the type, or cannot be written */
  toJson(value: unknown): JsonValue;
}

/** How values become those of JSON, or their type if they are that already. */
export type JsonForm = "string" | "boolean" | "number" | ToJson;

/**
 * The forms of message types, in one style; each is compiled on first use, because a message type may contain itself,
 * and because nearly all of what is defined is never written.
 */
export interface MessageForms {
  readonly style: JsonStyle;
  of(desc: DescMessage): ToJson;
}
