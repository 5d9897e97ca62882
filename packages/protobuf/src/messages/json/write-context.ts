import type { DescMessage, JsonValue, JsonWriteOptions } from "@bufbuild/protobuf";
import type { CodegenOptions } from "../codegen/index.ts";

/** How messages are written: Connect's options, and those of one service. */
export interface JsonStyle extends Partial<JsonWriteOptions>, CodegenOptions {
  /** Writes 64-bit integers as numbers, except those that a double cannot represent exactly. */
  readonly int64Numbers?: boolean;
}

/** Converts one type's values to values for `JSON.stringify`. */
export interface ToJson {
  /** @throws Error if the value has another type, or cannot be written */
  toJson(value: unknown): JsonValue;
}

/** How one type's values are converted to JSON, or the type name if they need no conversion. */
export type JsonForm = "string" | "boolean" | "number" | ToJson;

/**
 * The forms of message types, in one style. Each is compiled on first use, because a message type may contain itself,
 * and because most types are never written.
 */
export interface MessageForms {
  readonly style: JsonStyle;
  writerOf(desc: DescMessage): ToJson;
}
